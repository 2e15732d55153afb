# tests/cluster/silent_links_test.py - hosts whose cables are cut or swallow everything, and a link that is full. Needs root, for hosts
# that are network namespaces (tools/bench/lib/lab.py).
import json
import re
import sys

import cluster
import loss_run
import small_run
import view_oracle

sys.path.insert(0, str(cluster.ROOT / "tools/bench/lib"))

import lab as labs  # noqa: E402

WRONG_PLACE = "02:00:00:00:00:99"  # no host has it: what is sent there is lost, and nobody hears that


class SilentLinks(loss_run.LossRun):
    def hosts(self, nodes, *options, **of_solver):
        """Nodes on hosts of their own, in the order of their numbers, which train."""
        try:
            labs.need()
        except labs.LabError as e:
            self.skipTest(str(e))
        lab = labs.Lab(nodes)
        self.addCleanup(lab.__exit__, None, None, None)
        self.addCleanup(self.cluster.end)
        lab.__enter__()
        self.solver = small_run.solver(self.cluster.folder, "s", **{"iterations": cluster.ENDLESS, "lr": 0.002, **of_solver})
        token = self.cluster.token_file()

        def node(host, *words):
            return self.cluster.start("ip", "netns", "exec", lab.name(host), cluster.BIN / "poseidon-node", *words, "--devices", "cpu:1",
                                      "--json", "--token-file", token, *self.OPTIONS, name=f"node{host}")
        address = f"{lab.address(0)}:7600"
        first = node(0, "--solver", self.solver, "--listen", address, "--nodes", nodes, "--routes", "ps", "--survive", 1, *options)
        first.wait_for("listening on")
        started = [first]
        for host in range(1, nodes):
            started.append(node(host, "--join", address))
            first.wait_for(f"worker {host} joined from")
        first.wait_for('"event": ?"progress"')
        return lab, started

    def test_a_host_that_is_cut_off_or_swallows_everything_is_left_out(self):
        for fault in (labs.Lab.cut, labs.Lab.silence):
            for host in (0, 2):
                with self.subTest(fault=fault.__name__, host=host), cluster.Cluster() as self.cluster:
                    lab, nodes = self.hosts(3)
                    try:
                        fault(lab, host)
                        others = [n for n in range(3) if n != host]
                        view = self.view(nodes[others[0]], others)
                        self.trained(nodes[others[0]], view["first_clock"] + 1)
                        nodes[others[0]].stop()
                        self.assertEqual(nodes[others[1]].wait(), 0, nodes[others[1]])
                        self.ends_left_out(nodes[host])
                        self.check(nodes[others[0]])
                    finally:  # the next case has hosts of the same names
                        self.cluster.end()
                        lab.__exit__(None, None, None)

    def test_of_two_hosts_that_do_not_hear_each_other_one_is_left_out(self):
        lab, nodes = self.hosts(3)
        labs.run("ip", "-n", lab.name(1), "neigh", "replace", lab.address(2), "lladdr", WRONG_PLACE, "dev", "eth0", "nud", "permanent")
        view = json.loads(nodes[0].wait_for(r'^(.*"event": ?"view".*"members": ?\[0, ?[12]\].*)$')[1])
        stays, out = view["members"][1], 3 - view["members"][1]
        self.trained(nodes[0], view["first_clock"] + 1)
        self.assertEqual(nodes[out].wait(), 3, nodes[out])
        self.assertRegex("\n".join(nodes[out].errors), loss_run.LEFT_OUT)
        self.stop_and_check(nodes[0])
        self.assertEqual(nodes[stays].wait(), 0, nodes[stays])

    def test_a_link_that_is_full_loses_nobody(self):
        lab, nodes = self.hosts(3, hidden=512)
        lab.shape(20e6)  # a gradient takes a second
        clock = int(re.findall(r'"event": ?"progress".*?"clock": ?(\d+)', nodes[0].output)[-1])
        self.trained(nodes[0], clock + 5)
        nodes[0].stop()
        self.assertEqual([len(view_oracle.views_of(node)) for node in nodes], [1, 1, 1], nodes[0])
        self.assertFalse([line for line in nodes[0].lines if line.startswith("{") and json.loads(line)["event"] == "warning"])


if __name__ == "__main__":
    cluster.need("poseidon-node")
    cluster.main()
