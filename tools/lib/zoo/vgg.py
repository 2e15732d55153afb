# tools/lib/zoo/vgg.py - Simonyan and Zisserman, arXiv:1409.1556, table 1, configurations D (16) and E (19).
"""Five stages of 3 x 3 convolutions, each closed by a pooling that halves the image; three inner products."""
from net import XAVIER

STAGES = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}  # convolutions per stage
WIDTHS = (64, 128, 256, 512, 512)
MEANS = {"mean_value": [103.939, 116.779, 123.68]}  # blue, green, red


def write(net, depth, source="ilsvrc12", classes=1000, scores="fc8"):
    """XAVIER: with it the deep configurations train without the paper's detour over a shallow one (its section 3.1)."""
    x = net.data(source, 224, MEANS, batches=(32, 25))
    for stage, (convolutions, width) in enumerate(zip(STAGES[depth], WIDTHS), 1):
        for i in range(1, convolutions + 1):
            x = net.convolution(f"conv{stage}_{i}", x, width, 3, XAVIER, pad=1)
            x = net.relu(x, f"relu{stage}_{i}")
        x = net.pool(f"pool{stage}", x, "MAX", 2, stride=2)
    for number in (6, 7):
        x = net.inner_product(f"fc{number}", x, 4096, XAVIER)
        x = net.relu(x, f"relu{number}")
        x = net.dropout(x, f"drop{number}", 0.5)
    net.end(net.inner_product(scores, x, classes, XAVIER))
