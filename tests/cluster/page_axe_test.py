# tests/cluster/page_axe_test.py - axe-core finds no barrier on the page, whatever state the run is in.
import axe
import cluster
from page_use_test import TESTED
from shown_page import READY, ShownPage


class Barriers(ShownPage):
    def setUp(self):
        axe.require()
        super().setUp()

    def none(self, b, state):
        with self.subTest(state):
            self.assertEqual(axe.violations(b), [])
            self.keep(b, f"axe-{state}")

    def begin(self, b):
        nodes = self.two_nodes(self.small(more=TESTED), "--survive", 0)
        b.open(self.page)
        b.wait_for(READY, "the graph is drawn")
        b.wait_for("poseidon.store.members.length === 2 && poseidon.store.members.every(m => m.clock > 5) && poseidon.store.points.length > 3 "
                   "&& document.getElementById('overlap').textContent.includes('hidden')", "both nodes train")
        return nodes

    def test_no_barriers(self):
        for width, height in ((1440, 900), (420, 800)):
            size = "wide" if width > 1000 else "narrow"
            b = self.look(width, height)
            first, second = self.begin(b)
            for dark in (False, True):
                b.look(dark=dark, calm=True)
                self.none(b, f"live-{size}{'-dark' * dark}")
                b.value("document.getElementById('tests').click()")
                b.value("poseidon.graph.select(poseidon.graph.find('gradient_push conv1'))")
                self.assertEqual(b.value("document.getElementById('tests').getAttribute('aria-expanded')"), "true")
                self.none(b, f"open-{size}{'-dark' * dark}")
                b.value("document.getElementById('tests').click()")
                b.value("poseidon.graph.select(null)")
            first.stop()
            b.wait_for("document.getElementById('state').textContent === 'ended'", "the run has ended")
            for dark in (False, True):
                b.look(dark=dark, calm=True)
                self.none(b, f"ended-{size}{'-dark' * dark}")
            first, second = self.begin(b)
            second.kill()
            b.wait_for("document.getElementById('state').textContent.startsWith('ended: ')", "the run has failed")
            for dark in (False, True):
                b.look(dark=dark, calm=True)
                self.none(b, f"failed-{size}{'-dark' * dark}")


if __name__ == "__main__":
    cluster.need("poseidon-node", "poseidon-graph")
    cluster.main()
