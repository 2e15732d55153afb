// models/annotations.hpp - marks functions that GPU kernels call, for nvcc; empty for every other compiler.
#pragma once

#if defined(__CUDACC__)
#define POSEIDON_DEVICE __device__
#define POSEIDON_HOST_DEVICE __host__ __device__
#else
#define POSEIDON_DEVICE
#define POSEIDON_HOST_DEVICE
#endif
