# tests/cluster/script_words_test.py - what the library says, in the words of a script.
import sys
import unittest

import cluster

sys.path.insert(0, str(cluster.ROOT / "apps/python"))
from poseidon.options import in_script_words  # noqa: E402


class Words(unittest.TestCase):
    def test_nodes_are_workers_and_what_they_count_are_steps(self):
        for text, wanted in {
            "joined: worker 1 of 2; this node listens on 10.0.0.8:7600": "joined: worker 1 of 2; this worker listens on 10.0.0.8:7600",
            "view 3: 3 nodes train from iteration 54 on": "view 3: 3 workers train from step 54 on",
            "it left after 4 clocks, the node's last.": "it left after 4 steps, the worker's last.",
        }.items():
            self.assertEqual(in_script_words(text), wanted)

    def test_names_paths_addresses_and_commands_stay(self):
        for text in ("poseidon-node --join", "/data/node/nodes.txt", '"node" has another shape', "nodes=2", "listen=node:7600", "node:7600", "node-3, node_3, nodelist",
                     "node.weight"):
            self.assertEqual(in_script_words(text), text)

    def test_options_are_keywords(self):
        self.assertEqual(in_script_words("give token-file=FILE, and newcomers=accept"), "give token_file=FILE, and state=[...]")


if __name__ == "__main__":
    cluster.main()
