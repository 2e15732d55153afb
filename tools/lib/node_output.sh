# tools/lib/node_output.sh - what poseidon-node prints on standard output, read by scripts. To be sourced.
# This is the only place in bash that knows these lines; apps/terminal/console.cpp writes them.
# shellcheck shell=bash

# "listening on 127.0.0.1:41217; waiting for 1 node" -> 127.0.0.1:41217; empty while it is not there.
node_address() { sed -nE 's/^listening on ([^ ]+:[0-9]+)([^0-9].*)?$/\1/p' "$1" | tail -n 1; }

# The last "test iteration 1200: accuracy 0.8912 loss 0.30" -> 0.8912
node_accuracy() { sed -nE 's/^test iteration [0-9]+:.* ?accuracy ([0-9.eE+-]+).*/\1/p' "$1" | tail -n 1; }

# The last "snapshot PATH" -> PATH
node_snapshot() { sed -nE 's/^snapshot (.*\.caffemodel(\.h5)?)$/\1/p' "$1" | tail -n 1; }
