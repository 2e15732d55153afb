#!/bin/bash
# tools/lib/package_smoke.sh - what tools/package runs inside a bare Debian, as root, with the packages in /tmp.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
quietly() {
  "$@" > /tmp/log 2>&1 < /dev/null || { tail -n 30 /tmp/log; echo "failed: $*"; exit 1; }
}
# The words after the first as a user without rights; they have to print the first.
says() {
  local wanted=$1 said
  shift
  said=$(cd /tmp/run && setpriv --reuid=65534 --regid=65534 --clear-groups "$@" 2>&1 < /dev/null) || true
  [[ $said == *"$wanted"* ]] || { echo "$said" | tail -n 20; echo "failed: $* did not say \"$wanted\""; exit 1; }
  echo "ok  $*"
}

quietly apt-get --yes update
quietly apt-get --yes install --no-install-recommends /tmp/poseidon_*.deb
echo "ok  installed $(dpkg-query --show poseidon)"
install -d -o 65534 /tmp/run
cp -r /usr/share/poseidon/models /tmp/run/
cat > /tmp/run/net.prototxt <<'NET'
name: "smoke"
layer { name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 4 dim: 1 dim: 28 dim: 28 } shape { dim: 4 } data_filler { type: "gaussian" std: 1 } data_filler { value: 3 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 5
  weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip" inner_product_param { num_output: 10
  weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
NET
echo 'net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 3 display: 1 snapshot_prefix: "smoke"' > /tmp/run/solver.prototxt

train=(poseidon-node --solver solver.prototxt --devices)
says "poseidon-node " poseidon-node --version
says "snapshot smoke_iter_3.caffemodel" "${train[@]}" cpu:2
says "snapshot smoke_iter_3.caffemodel" "${train[@]}" 0 --gpu-plugin /usr/lib/poseidon/libposeidon_gpu_simulated.so
says "digraph" poseidon-graph models/zoo/lenet/solver.prototxt --input 1x28x28 --nodes 2
says "weights" poseidon-data info smoke_iter_3.caffemodel
echo 'snapshot_format: HDF5' >> /tmp/run/solver.prototxt
says "snapshot smoke_iter_3.caffemodel.h5" "${train[@]}" cpu:2
says "weights" poseidon-data info smoke_iter_3.caffemodel.h5
says "poseidon-node" bash -c 'zcat /usr/share/man/man1/poseidon-node.1.gz'
says "_poseidon_node" bash -c 'source /usr/share/bash-completion/completions/poseidon-node && complete -p poseidon-node'
says "ExecStart=/usr/bin/poseidon-node" cat /usr/lib/systemd/system/poseidon-node@.service
says "ExecStart=/usr/bin/env \$COMMAND" cat /usr/lib/systemd/system/poseidon-script@.service

if compgen -G "/tmp/poseidon-gpu_*.deb" > /dev/null; then
  quietly apt-get --yes install --no-install-recommends /tmp/poseidon-gpu_*.deb
  says "no NVIDIA driver" "${train[@]}" 0
  # Past the driver, what is missing is CUDA's, and the message names it.
  says "does not load: libcu" "${train[@]}" 0 --gpu-plugin /usr/lib/poseidon/libposeidon_gpu.so
fi
quietly apt-get --yes purge 'poseidon*'
left=$(find / -xdev -path /tmp -prune -o -path /var/lib/apt -prune -o -path /proc -prune -o -iname '*poseidon*' -print)
[[ -z $left ]] || { echo "left after purge: $left"; exit 1; }
echo "ok  purged"
