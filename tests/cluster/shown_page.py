# tests/cluster/shown_page.py - a run and a browser that shows its page, for the tests of the page.
# POSEIDON_PICTURES=FOLDER keeps pictures of it there, for people.
import os
import pathlib

import browser
import cluster
import small_run
from web_page import PAGE

READY = "poseidon.store.graph && poseidon.store.graph.nodes.length > 10 && poseidon.store.ticks > 2 && poseidon.graph.layout"
# What is looked at trains without an end: some iterations a second are enough, and leave the processors to others.
SLOW = ("--link-mbit", 100)
PICTURES = os.environ.get("POSEIDON_PICTURES")

# A net in the shape of GoogLeNet, as wide and as deep as is asked: modules of four branches.
MODULE = """
layer {{ name: "m{i}/1x1" type: "Convolution" bottom: "{b}" top: "m{i}/1x1" convolution_param {{ num_output: 4 kernel_size: 1 }} }}
layer {{ name: "m{i}/relu_1x1" type: "ReLU" bottom: "m{i}/1x1" top: "m{i}/1x1" }}
layer {{ name: "m{i}/3x3_reduce" type: "Convolution" bottom: "{b}" top: "m{i}/3x3_reduce" convolution_param {{ num_output: 4 kernel_size: 1 }} }}
layer {{ name: "m{i}/relu_3x3_reduce" type: "ReLU" bottom: "m{i}/3x3_reduce" top: "m{i}/3x3_reduce" }}
layer {{ name: "m{i}/3x3" type: "Convolution" bottom: "m{i}/3x3_reduce" top: "m{i}/3x3" convolution_param {{ num_output: 4 kernel_size: 3 pad: 1 }} }}
layer {{ name: "m{i}/relu_3x3" type: "ReLU" bottom: "m{i}/3x3" top: "m{i}/3x3" }}
layer {{ name: "m{i}/pool" type: "Pooling" bottom: "{b}" top: "m{i}/pool" pooling_param {{ pool: MAX kernel_size: 3 stride: 1 pad: 1 }} }}
layer {{ name: "m{i}/pool_proj" type: "Convolution" bottom: "m{i}/pool" top: "m{i}/pool_proj" convolution_param {{ num_output: 4 kernel_size: 1 }} }}
layer {{ name: "m{i}/relu_pool_proj" type: "ReLU" bottom: "m{i}/pool_proj" top: "m{i}/pool_proj" }}
layer {{ name: "m{i}/output" type: "Concat" bottom: "m{i}/1x1" bottom: "m{i}/3x3" bottom: "m{i}/pool_proj" top: "m{i}/output" }}
"""


def deep_net(folder, modules):
    text = ('name: "modules"\nlayer { name: "data" type: "DummyData" top: "data" top: "label"\n'
            '  dummy_data_param { shape { dim: 4 dim: 3 dim: 8 dim: 8 } shape { dim: 4 } } }\n')
    bottom = "data"
    for i in range(modules):
        text += MODULE.format(i=i, b=bottom)
        bottom = f"m{i}/output"
    text += (f'layer {{ name: "loss/classifier" type: "InnerProduct" bottom: "{bottom}" top: "scores" inner_product_param {{ num_output: 5 }} }}\n'
             'layer { name: "loss/loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }\n')
    (folder / "deep.prototxt").write_text(text)
    path = folder / "deep.solver"
    path.write_text(f'net: "{folder}/deep.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: {cluster.ENDLESS} display: 1 '
                    f'snapshot_prefix: "{folder}/deep"\n')
    return path


class ShownPage(small_run.Trained):
    # Without the transitions of style.css, as for a reader who does not want motion: each change of a queue would have its boxes painted for ten
    # frames, by the processor here. browser_test.py looks at the page with them.
    CALM = True

    def look(self, width=1440, height=900, dark=False):
        b = browser.Browser(width, height, dark, self.CALM)
        self.addCleanup(b.close)
        return b

    def keep(self, b, name):
        if PICTURES:
            pathlib.Path(PICTURES).mkdir(parents=True, exist_ok=True)
            b.picture(pathlib.Path(PICTURES) / f"{name}.png")

    def two_nodes(self, solver, *options, web="127.0.0.1:0", way=lambda address: address):
        """`way`: from the first node's address to the one that the other node dials."""
        first = self.cluster.node("--solver", solver, "--devices", "cpu:1", "--listen", "127.0.0.1:0", "--nodes", 2,
                                  "--web", web, *SLOW, *options)
        self.page = first.wait_for(PAGE)[1] + "/"
        second = self.cluster.node("--join", way(first.wait_for(cluster.LISTENING)[1]), "--devices", "cpu:1", *SLOW)
        return first, second

    def small(self, **of_solver):
        return small_run.solver(self.cluster.folder, "page", **{"iterations": cluster.ENDLESS, "lr": 0.0001, **of_solver})

    def overlaps(self, b):
        """Pairs of boxes that share more than a border, by name."""
        return self.overlapping(b.value("[...poseidon.graph.elements.values()].map(e => [e.node.name, e.place.x, e.place.y, e.place.w, e.place.h])"))

    @staticmethod
    def overlapping(boxes, border=0):
        boxes = sorted(boxes, key=lambda p: p[1])
        out = []
        for i, (name, x, y, w, h) in enumerate(boxes):
            for other, ox, oy, ow, oh in boxes[i + 1:]:
                if ox >= x + w - border:
                    break
                if oy + border < y + h and y + border < oy + oh:
                    out.append((name, other))
        return out
