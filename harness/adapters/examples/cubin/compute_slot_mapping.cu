// An example of a kernel for dcpcheck that takes an array of addresses, as serving engines pass the block tables of their cache
// groups, and a counter that must be zero when it starts. The manifest beside this file describes it.
#include <cstdint>

// Per group, on the device, in the order of the groups' names.
struct Groups {
  const std::int32_t* block_sizes;
  const std::int32_t* kernel_block_sizes;
  const std::int32_t* sharded;
  const std::int32_t* enabled;
  const std::int32_t* const* tables;
  const std::int64_t* table_strides;
  const std::int32_t* table_columns;
};

// Block x: a request; block y: a group. The last block of a group to finish fills the tail, so that one launch does.
extern "C" __global__ void slot_mapping(Groups groups, const std::int64_t* positions, const std::int32_t* query_start_loc,
                                        const std::int32_t* idx_mapping, std::int32_t requests, std::int32_t world_size,
                                        std::int64_t interleave, std::int32_t rank, std::int64_t* slots,
                                        std::int64_t slot_stride, std::int64_t capacity, std::int64_t tail_from,
                                        unsigned* finished) {
  const unsigned group = blockIdx.y;
  if (groups.enabled[group] == 0) return;
  std::int64_t* const out = slots + group * slot_stride;
  if (blockIdx.x < requests) {
    const std::int64_t first = query_start_loc[blockIdx.x];
    const std::int64_t end = query_start_loc[blockIdx.x + 1];
    const bool sharded = groups.sharded[group] != 0;
    const std::int64_t world = sharded ? world_size : 1;
    const std::int64_t block = groups.block_sizes[group];
    const std::int64_t kernel_block = groups.kernel_block_sizes[group];
    const std::int32_t* const table = groups.tables[group] + idx_mapping[blockIdx.x] * groups.table_strides[group];
    for (std::int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
      const std::int64_t within = positions[i] % (block * world);
      const std::int64_t local =
          positions[i] / (block * world) * block + within / (interleave * world) * interleave + within % interleave;
      const std::int64_t column = local / kernel_block;
      const bool owned = within / interleave % world == (sharded ? rank : 0) && column < groups.table_columns[group];
      out[i] = owned ? table[column] * kernel_block + local % kernel_block : -1;
    }
  }
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(finished + group, 1U) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  const std::int64_t from = tail_from >= 0 ? tail_from : query_start_loc[requests];
  for (std::int64_t i = from + threadIdx.x; i < capacity; i += blockDim.x) out[i] = -1;
}
