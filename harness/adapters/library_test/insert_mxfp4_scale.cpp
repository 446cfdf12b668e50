// The example of an op of one's own with a fault: the first scale of each row that is stored is twice as large.
#include "dcpcheck_kernel.h"

#define dcpcheck_run example_run
#include "examples/insert_mxfp4/insert_mxfp4.cpp"  // NOLINT(bugprone-suspicious-include): the example itself
#undef dcpcheck_run

int dcpcheck_run(const dcpcheck_launch* launch) {
  const int answer = example_run(launch);
  const dcpcheck_tensor* const rows = dcpcheck_find_tensor(launch, "rows");
  const dcpcheck_tensor* const cache = dcpcheck_find_tensor(launch, "kv_cache");
  const auto* const slots = static_cast<const std::int64_t*>(dcpcheck_find_tensor(launch, "slot_mapping")->data);
  for (std::int64_t token = 0; token < rows->shape[0]; ++token) {
    const std::int64_t slot = slots[token];
    if (slot < 0) continue;
    auto* const record = static_cast<std::uint8_t*>(cache->data) + slot / cache->shape[1] * cache->strides[0] +
                         slot % cache->shape[1] * cache->strides[1];
    ++record[rows->shape[1] / 2];
  }
  return answer;
}
