net: "AlexNet"
measured: "1000 images/s (an assumption for a GTX Titan X: nobody's measurement), spread over the layers by flops: tools/profiles"
batch: 256
gflop_s: 4135.61
layer { name: "conv1" forward_ms: 13.0507 backward_ms: 13.0507 }
layer { name: "conv2" forward_ms: 27.7255 backward_ms: 55.451 }
layer { name: "conv3" forward_ms: 18.511 backward_ms: 37.0221 }
layer { name: "conv4" forward_ms: 13.8833 backward_ms: 27.7666 }
layer { name: "conv5" forward_ms: 9.25552 backward_ms: 18.511 }
layer { name: "fc6" forward_ms: 4.6734 backward_ms: 9.3468 }
layer { name: "fc7" forward_ms: 2.07707 backward_ms: 4.15413 }
layer { name: "fc8" forward_ms: 0.507096 backward_ms: 1.01419 }
