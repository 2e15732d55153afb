# tools/bench/lib/perceptron.py - a net of inner products alone: what nodes that compute on CPUs had better not send as factors.
PIXELS = 28


def perceptron(width, layers, batch):
    """The net's text: 28 x 28 pixels of 3 channels, `layers` times `width` outputs, 10 classes."""
    text = [f'layer {{ name: "data" type: "Data" top: "data" top: "label" transform_param {{ crop_size: {PIXELS} }}\n'
            f'  data_param {{ source: "none" batch_size: {batch} backend: LMDB }} }}']
    for i in range(1, layers + 1):
        below = "data" if i == 1 else f"fc{i - 1}"
        text.append(f'layer {{ name: "fc{i}" type: "InnerProduct" bottom: "{below}" top: "fc{i}"\n'
                    f'  inner_product_param {{ num_output: {width} weight_filler {{ type: "xavier" }} }} }}\n'
                    f'layer {{ name: "relu{i}" type: "ReLU" bottom: "fc{i}" top: "fc{i}" }}')
    text.append('layer { name: "classes" type: "InnerProduct" bottom: "fc%d" top: "classes"\n'
                '  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }\n'
                'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "classes" bottom: "label" top: "loss" }' % layers)
    return 'name: "perceptron"\n' + "\n".join(text) + "\n"
