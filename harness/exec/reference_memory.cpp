#include "harness/exec/reference_memory.hpp"

#include <utility>

#include "harness/core/case.hpp"
#include "harness/core/digest.hpp"

namespace dcpcheck {
namespace {

// All that the answer depends on. Where ranks do not matter, what differs between them does not either.
std::string question(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  Sha256 sha;
  sha.add(plan.op->name).add("|").add(case_id(*plan.op, plan.value)).add(std::int64_t{options.lanes}).add(options.sample);
  if (plan.op->rank_reference) sha.add(rank);
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::in || (tensor.spec->per_rank && !plan.op->rank_reference)) continue;
    sha.add(tensor.name).add("|").add(inputs.get(tensor.name, rank));
  }
  return sha.hex();
}

std::int64_t bytes_of(const Expected& expected) {
  std::size_t bytes = 0;
  for (const auto& [name, rows] : expected) {
    bytes += rows.codes.size() + (rows.value.size() + rows.error.size()) * sizeof(double) +
             rows.alternatives.size() * sizeof(Alternative) + 256;
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

std::shared_ptr<const Expected> ReferenceMemory::ask(const Reference& reference, const Plan& plan, const Inputs& inputs,
                                                     std::int64_t rank, const ReferenceOptions& options) {
  std::string key = question(plan, inputs, rank, options);
  if (key == last_) return last_answer_;
  if (const auto found = kept_.find(key); found != kept_.end()) return found->second.answer;
  last_answer_.reset();  // before the next one takes its room
  last_answer_ = std::make_shared<const Expected>(reference(plan, inputs, rank, options));
  last_ = key;
  // One that would push out a large part of the others is not worth it.
  const std::int64_t bytes = bytes_of(*last_answer_);
  if (bytes > budget_ / 32) return last_answer_;
  while (bytes_ + bytes > budget_ && !order_.empty()) {
    const auto oldest = kept_.find(order_.front());
    bytes_ -= oldest->second.bytes;
    kept_.erase(oldest);
    order_.pop_front();
  }
  order_.push_back(key);
  bytes_ += bytes;
  return kept_.emplace(std::move(key), Kept{last_answer_, bytes}).first->second.answer;
}

}  // namespace dcpcheck
