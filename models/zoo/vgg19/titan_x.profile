net: "VGG-19"
measured: "35.5 images/s (Caffe, Zhang et al., USENIX ATC 2017, one GTX Titan X), spread over the layers by flops: tools/profiles"
batch: 32
gflop_s: 4175.47
layer { name: "conv1_1" forward_ms: 1.32897 backward_ms: 1.32897 }
layer { name: "conv1_2" forward_ms: 28.3513 backward_ms: 56.7026 }
layer { name: "conv2_1" forward_ms: 14.1756 backward_ms: 28.3513 }
layer { name: "conv2_2" forward_ms: 28.3513 backward_ms: 56.7026 }
layer { name: "conv3_1" forward_ms: 14.1756 backward_ms: 28.3513 }
layer { name: "conv3_2" forward_ms: 28.3513 backward_ms: 56.7026 }
layer { name: "conv3_3" forward_ms: 28.3513 backward_ms: 56.7026 }
layer { name: "conv3_4" forward_ms: 28.3513 backward_ms: 56.7026 }
layer { name: "conv4_1" forward_ms: 14.1756 backward_ms: 28.3513 }
layer { name: "conv4_2" forward_ms: 28.3513 backward_ms: 56.7026 }
layer { name: "conv4_3" forward_ms: 28.3513 backward_ms: 56.7026 }
layer { name: "conv4_4" forward_ms: 28.3513 backward_ms: 56.7026 }
layer { name: "conv5_1" forward_ms: 7.08782 backward_ms: 14.1756 }
layer { name: "conv5_2" forward_ms: 7.08782 backward_ms: 14.1756 }
layer { name: "conv5_3" forward_ms: 7.08782 backward_ms: 14.1756 }
layer { name: "conv5_4" forward_ms: 7.08782 backward_ms: 14.1756 }
layer { name: "fc6" forward_ms: 1.57507 backward_ms: 3.15014 }
layer { name: "fc7" forward_ms: 0.257155 backward_ms: 0.514309 }
layer { name: "fc8" forward_ms: 0.0627819 backward_ms: 0.125564 }
