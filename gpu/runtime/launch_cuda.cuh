// gpu/runtime/launch_cuda.cuh - gpu/runtime/launch.hpp for nvcc. Only launch.hpp includes it.
#pragma once
#include "gpu/runtime/launch.hpp"

#include <cstring>
#include <cuda_runtime.h>

namespace poseidon::gpu {

/// Makes the stream's device that of the calling thread, as a launch needs it.
void enter_device(const stream& s);
/// Throws the error of the launch before, if it failed.
void check_launch(const stream& s);

namespace cuda {

template <class F>
__global__ void each(index n, F f) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) f(static_cast<index>(i));
}

/// A T of each thread in shared memory, word by word: the words of neighbouring threads lie in neighbouring banks. Whole
/// Ts of 128 bytes would not, and the threads of a warp would have to take turns for each word.
template <class T>
struct shared_results {
  static constexpr index words = sizeof(T) / 4;
  static_assert(sizeof(T) % 4 == 0);
  std::uint32_t word[words][block_threads];

  __device__ void put(index thread, const T& v) {
    std::uint32_t of_v[words];
    memcpy(of_v, &v, sizeof v);
    for (index w = 0; w < words; ++w) word[w][thread] = of_v[w];
  }
  __device__ T get(index thread) const {
    std::uint32_t of_v[words];
    for (index w = 0; w < words; ++w) of_v[w] = word[w][thread];
    T v;
    memcpy(&v, of_v, sizeof v);
    return v;
  }
};

/// A block per row. Each thread combines every block_threads-th value, then halves combine with halves.
template <class T, class Load, class Combine, class Store>
__global__ void reduce(index columns, T start, Load load, Combine combine, Store store) {
  __shared__ shared_results<T> partial;
  const index row = blockIdx.x;
  T mine = start;
  for (std::uint64_t c = threadIdx.x; c < columns; c += block_threads)
    mine = combine(mine, load(row, static_cast<index>(c)));
  partial.put(threadIdx.x, mine);
  __syncthreads();
  for (index half = block_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      mine = combine(mine, partial.get(threadIdx.x + half));
      partial.put(threadIdx.x, mine);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) store(row, mine);
}

/// A block per `across` columns, a power of 2, and part of the rows. Of the threads that share a column each combines its
/// turn of the rows, then halves combine with halves.
template <class T, class Load, class Combine>
__global__ void reduce_parts(column_cut p, T start, Load load, Combine combine, T* parts) {
  __shared__ shared_results<T> partial;
  const index lanes = p.lanes(), lane = threadIdx.x / p.across;
  const std::uint64_t column = std::uint64_t{blockIdx.x} * p.across + threadIdx.x % p.across;
  const std::uint64_t first = std::uint64_t{blockIdx.y} * p.part_rows, past = first + p.part_rows;
  const std::uint64_t end = past < p.rows ? past : p.rows;
  T mine = start;
  if (column < p.columns) {
    const auto of_row = load.of(static_cast<index>(column));
#pragma unroll 4
    for (std::uint64_t r = first + lane; r < end; r += lanes)
      mine = combine(mine, of_row(static_cast<index>(r)));
  }
  partial.put(threadIdx.x, mine);
  __syncthreads();
  for (index half = lanes / 2; half > 0; half /= 2) {
    if (lane < half) {
      mine = combine(mine, partial.get(threadIdx.x + half * p.across));
      partial.put(threadIdx.x, mine);
    }
    __syncthreads();
  }
  if (lane == 0 && column < p.columns) parts[std::size_t{blockIdx.y} * p.columns + column] = mine;
}

}  // namespace cuda

template <class F>
void for_each(stream& s, std::size_t n, F f) {
  if (n == 0) return;
  const index count = to_index(n);
  const auto blocks = static_cast<unsigned>((n + block_threads - 1) / block_threads);
  enter_device(s);
  cuda::each<<<blocks, block_threads, 0, static_cast<cudaStream_t>(s.native())>>>(count, f);
  check_launch(s);
}

template <class T, class Load, class Combine, class Store>
void reduce_rows(stream& s, std::size_t rows, std::size_t columns, T start, Load load,
                 Combine combine, Store store) {
  if (rows == 0) return;
  const index blocks = to_index(rows);
  enter_device(s);
  cuda::reduce<<<blocks, block_threads, 0, static_cast<cudaStream_t>(s.native())>>>(
      to_index(columns), start, load, combine, store);
  check_launch(s);
}

template <class T, class Load, class Combine>
void reduce_parts(stream& s, const column_cut& p, T start, Load load, Combine combine, T* results) {
  const dim3 blocks((p.columns + p.across - 1) / p.across, p.parts);
  enter_device(s);
  cuda::reduce_parts<<<blocks, block_threads, 0, static_cast<cudaStream_t>(s.native())>>>(
      p, start, load, combine, results);
  check_launch(s);
}

}  // namespace poseidon::gpu
