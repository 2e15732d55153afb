# tests/cluster/view_oracle.py - a run whose members change equals a chain of runs of one process, bit for bit.
#
# A view of N members that begins with clock C is a resume, on one process with iter_size N times as large, from the snapshot that
# the process before has written at C. So the parameters and the solver state at the end have to be the same: no sample was left
# out, taken twice or added in another order, and no state was lost. Holds for --routes ps, float32 and staleness 0.
#
#   from a test      view_oracle.check(cluster, solver, views_of(node), snapshot)
#   for any run      view_oracle.py --solver SOLVER --events EVENTS --snapshot X.caffemodel    (EVENTS: what --json has written)
import argparse
import json
import pathlib
import re

import cluster


def views_of(node):
    """(first clock, number of members) of each view, from the events of a node that was there from the beginning, in --json."""
    return views_in(node.lines)


def views_in(lines):
    events = [json.loads(line) for line in lines if line.startswith("{")]
    return [(e["first_clock"], len(e["members"])) for e in events if e["event"] == "view"]


def with_field(text, name, value):
    """A solver's text with another value of a field that is a number or a text."""
    text, found = re.subn(rf'(?<![\w]){name}: *("[^"]*"|\S+)', f"{name}: {value}", text)
    return text if found else f"{text}\n{name}: {value}\n"


def chain(nodes, solver, views, end, devices="cpu:1", as_nodes=False, options=(), routes="ps"):
    """Trains the views one after the other, each in one process, or on so many nodes, the first with these `options`. Returns the last
    snapshot. `devices`: the value of --devices, or it and more words."""
    devices = ["--devices", *([devices] if isinstance(devices, str) else devices)]
    text = pathlib.Path(solver).read_text()
    found = re.search(r"(?<!\w)iter_size: *(\d+)", text)
    micro_batches = int(found[1]) if found else 1
    state = None
    ends = [first for first, _ in views[1:]] + [end]
    for place, ((first, members), last) in enumerate(zip(views, ends)):
        if first == last:
            continue  # it was left before it trained anything
        stem = nodes.folder / f"chain{place}"
        part = with_field(text, "iter_size", micro_batches * (1 if as_nodes else members))
        part = with_field(part, "max_iter", last)
        part = with_field(part, "snapshot_prefix", f'"{stem}"')
        path = nodes.folder / f"chain{place}.prototxt"
        path.write_text(part)
        resume = ["--snapshot", state] if state else []
        several = as_nodes and members > 1
        words = ["--listen", "127.0.0.1:0", "--nodes", members, "--routes", routes, *options] if several else []
        part_of = [nodes.node("--solver", path, *devices, *resume, *words)]
        if several:
            address = part_of[0].wait_for(cluster.LISTENING)[1]
            part_of += [nodes.node("--join", address, *devices) for _ in range(members - 1)]
        for node in part_of:
            assert node.wait() == 0, node
        state = pathlib.Path(f"{stem}_iter_{last}.solverstate")
    return state.with_suffix(".caffemodel")


def check(nodes, solver, views, snapshot, devices="cpu:1", as_nodes=False, options=(), routes="ps"):
    """Fails with the first value that differs. `as_nodes`: compares with a chain of runs on as many nodes as each view has, with these
    `options` and `routes`."""
    snapshot = pathlib.Path(snapshot)
    end = int(re.search(r"_iter_(\d+)\.", snapshot.name)[1])
    one = chain(nodes, solver, views, end, devices, as_nodes, options, routes)
    cluster.assert_same_weights(one, snapshot)
    cluster.assert_same_state(one.with_suffix(".solverstate"), snapshot.with_suffix(".solverstate"))


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--solver", required=True)
    words.add_argument("--events", required=True)
    words.add_argument("--snapshot", required=True)
    words.add_argument("--devices", default="cpu:1")
    told = words.parse_args()
    views = views_in(pathlib.Path(told.events).read_text().splitlines())
    with cluster.Cluster() as nodes:
        check(nodes, told.solver, views, told.snapshot, told.devices)
    print(f"{len(views)} views, the same bits: {views}")


if __name__ == "__main__":
    main()
