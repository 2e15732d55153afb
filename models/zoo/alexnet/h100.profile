net: "AlexNet"
measured: "GPU 0: NVIDIA H100 80GB HBM3, 79.2 GiB, compute capability 9.0; CUDA 13.0, cuDNN 9.19.0, driver 13.0; products in tf32, images in NHWC, 1 replicas, time of the first over 10 iterations, less the waits for the device"
batch: 256
gflop_s: 66690
layer { name: "data" forward_ms: 2.91138 backward_ms: 0 }
layer { name: "conv1" forward_ms: 1.54716 backward_ms: 1.69131 }
layer { name: "relu1" forward_ms: 0.0343947 backward_ms: 0.0144808 }
layer { name: "norm1" forward_ms: 0.337993 backward_ms: 0.515348 }
layer { name: "pool1" forward_ms: 0.223098 backward_ms: 0.256336 }
layer { name: "conv2" forward_ms: 1.1097 backward_ms: 2.93429 }
layer { name: "relu2" forward_ms: 0.0238876 backward_ms: 0.0143939 }
layer { name: "norm2" forward_ms: 0.241246 backward_ms: 0.354855 }
layer { name: "pool2" forward_ms: 0.154252 backward_ms: 0.18555 }
layer { name: "conv3" forward_ms: 0.337536 backward_ms: 0.703811 }
layer { name: "relu3" forward_ms: 0.0128302 backward_ms: 0.0172272 }
layer { name: "conv4" forward_ms: 0.655445 backward_ms: 1.04375 }
layer { name: "relu4" forward_ms: 0.0114193 backward_ms: 0.0110365 }
layer { name: "conv5" forward_ms: 0.382764 backward_ms: 0.848106 }
layer { name: "relu5" forward_ms: 0.00685694 backward_ms: 0 }
layer { name: "pool5" forward_ms: 0.0742015 backward_ms: 0.0632002 }
layer { name: "fc6" forward_ms: 0.25519 backward_ms: 0.278041 }
layer { name: "relu6" forward_ms: 0.0200113 backward_ms: 0.0179849 }
layer { name: "drop6" forward_ms: 0.0421243 backward_ms: 0.0318051 }
layer { name: "fc7" forward_ms: 0.110223 backward_ms: 0.160538 }
layer { name: "relu7" forward_ms: 0.0104243 backward_ms: 0.0315527 }
layer { name: "drop7" forward_ms: 0.0326048 backward_ms: 0.0345565 }
layer { name: "fc8" forward_ms: 0.084646 backward_ms: 0.107931 }
layer { name: "loss" forward_ms: 0.0318449 backward_ms: 0.011664 }
