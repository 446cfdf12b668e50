#include "harness/exec/reference_memory.hpp"

#include <exception>
#include <utility>

#include "harness/core/case.hpp"
#include "harness/core/digest.hpp"

namespace dcpcheck {
namespace {

std::int64_t bytes_of(const Expected& expected) {
  std::size_t bytes = 0;
  for (const auto& [name, rows] : expected) {
    bytes += rows.codes.size() + (rows.value.size() + rows.error.size()) * sizeof(double) +
             rows.alternatives.size() * sizeof(Alternative) + 256;
  }
  return static_cast<std::int64_t>(bytes);
}

std::string key_of(const std::string& question, const std::map<std::string, std::string>& digests) {
  return question + combine_digests(digests);
}

}  // namespace

std::string question_of(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  Sha256 sha;
  sha.add(plan.op->name).add("|").add(case_id(*plan.op, plan.value)).add(std::int64_t{options.lanes}).add(options.sample);
  if (plan.op->rank_reference) sha.add(rank);
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.role != Role::in || (tensor.spec->per_rank && !plan.op->rank_reference)) continue;
    sha.add(tensor.name).add("|").add(inputs.get(tensor.name, rank));
  }
  return sha.hex();
}

std::shared_ptr<const Expected> ReferenceMemory::ask(const std::string& question, const Reference& reference, const Plan& plan,
                                                     const Inputs& inputs, std::int64_t rank, const ReferenceOptions& options) {
  std::promise<std::shared_ptr<const Expected>> promise;
  const Answer mine = promise.get_future().share();
  {
    std::unique_lock lock(guard_);
    if (const auto found = asked_.find(question); found != asked_.end()) {
      const Answer theirs = found->second;
      lock.unlock();
      return theirs.get();  // waits for the thread that is at it
    }
    asked_.emplace(question, mine);
  }
  try {
    auto answer = std::make_shared<const Expected>(reference(plan, inputs, rank, options));
    const std::int64_t bytes = bytes_of(*answer);
    promise.set_value(std::move(answer));
    keep(question, mine, bytes);
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::scoped_lock lock(guard_);
    asked_.erase(question);
  }
  return mine.get();
}

void ReferenceMemory::keep(const std::string& question, const Answer& answer, std::int64_t bytes) {
  const std::scoped_lock lock(guard_);
  // One that would push out a large part of the others is kept until the next such one alone.
  if (bytes > budget_ / 32) {
    if (!last_.empty()) asked_.erase(last_);
    last_ = question;
    asked_[question] = answer;
    return;
  }
  while (bytes_ + bytes > budget_ && !order_.empty()) {
    bytes_ -= kept_.at(order_.front());
    kept_.erase(order_.front());
    asked_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(question);
  kept_.emplace(question, bytes);
  bytes_ += bytes;
}

std::optional<LaunchFindings> ReferenceMemory::judged(const std::string& question,
                                                      const std::map<std::string, std::string>& digests) const {
  const std::scoped_lock lock(guard_);
  const auto found = judged_.find(key_of(question, digests));
  return found == judged_.end() ? std::nullopt : std::optional(found->second);
}

void ReferenceMemory::remember(const std::string& question, const LaunchFindings& findings) {
  const std::scoped_lock lock(guard_);
  judged_.emplace(key_of(question, findings.digests), findings);
}

}  // namespace dcpcheck
