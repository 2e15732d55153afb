net: "VGG19-22K"
measured: "34.2 images/s (Caffe, Zhang et al., USENIX ATC 2017, one GTX Titan X), spread over the layers by flops: tools/profiles"
batch: 32
gflop_s: 4040.09
layer { name: "conv1_1" forward_ms: 1.3735 backward_ms: 1.3735 }
layer { name: "conv1_2" forward_ms: 29.3014 backward_ms: 58.6027 }
layer { name: "conv2_1" forward_ms: 14.6507 backward_ms: 29.3014 }
layer { name: "conv2_2" forward_ms: 29.3014 backward_ms: 58.6027 }
layer { name: "conv3_1" forward_ms: 14.6507 backward_ms: 29.3014 }
layer { name: "conv3_2" forward_ms: 29.3014 backward_ms: 58.6027 }
layer { name: "conv3_3" forward_ms: 29.3014 backward_ms: 58.6027 }
layer { name: "conv3_4" forward_ms: 29.3014 backward_ms: 58.6027 }
layer { name: "conv4_1" forward_ms: 14.6507 backward_ms: 29.3014 }
layer { name: "conv4_2" forward_ms: 29.3014 backward_ms: 58.6027 }
layer { name: "conv4_3" forward_ms: 29.3014 backward_ms: 58.6027 }
layer { name: "conv4_4" forward_ms: 29.3014 backward_ms: 58.6027 }
layer { name: "conv5_1" forward_ms: 7.32534 backward_ms: 14.6507 }
layer { name: "conv5_2" forward_ms: 7.32534 backward_ms: 14.6507 }
layer { name: "conv5_3" forward_ms: 7.32534 backward_ms: 14.6507 }
layer { name: "conv5_4" forward_ms: 7.32534 backward_ms: 14.6507 }
layer { name: "fc6" forward_ms: 1.62785 backward_ms: 3.25571 }
layer { name: "fc7" forward_ms: 0.265772 backward_ms: 0.531544 }
layer { name: "fc8_22k" forward_ms: 1.41717 backward_ms: 2.83434 }
