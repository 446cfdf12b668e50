#include "harness/exec/launch.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/portable.hpp"

namespace dcpcheck {
namespace {

std::int64_t page_of(std::int64_t byte) { return (byte - (byte < 0 ? kWindowPage - 1 : 0)) / kWindowPage; }

}  // namespace

void LaunchMemory::reserve(std::int64_t bytes) {
  if (bytes <= bytes_) return;
  before_a = HostMemory(bytes);
  before_b = HostMemory(bytes);
  after_a = backend_->image_memory(bytes);
  after_b = backend_->image_memory(bytes);
  again_a_.reset();
  bytes_ = bytes;
}

std::shared_ptr<std::byte> LaunchMemory::again_a() {
  if (!again_a_) again_a_ = backend_->image_memory(bytes_);
  return again_a_;
}

void add_findings(LaunchFindings&& findings, Verdict& verdict) {
  verdict.compared += findings.compared;
  verdict.tainted += findings.tainted;
  verdict.left_out += findings.left_out;
  verdict.must_write += findings.must_write;
  verdict.written += findings.written;
  verdict.guarded += findings.guarded;
  if (verdict.worst.buffer.empty() || findings.worst.fraction > verdict.worst.fraction) verdict.worst = findings.worst;
  for (Violation& violation : findings.violations) verdict.violations.push_back(std::move(violation));
}

void end_at(const LaunchError& error, const std::string& where, Verdict& verdict) {
  verdict.status = Status::fail;
  verdict.detail = where + ": " + error.why;
  if (!verdict.violations.empty()) {
    verdict.reason = verdict.violations.front().reason;
    return;
  }
  switch (error.kind) {
    case LaunchError::Kind::refused: verdict.reason = Reason::launch_refused; break;
    case LaunchError::Kind::floating_point_mode: verdict.reason = Reason::floating_point_mode; break;
    case LaunchError::Kind::beside_inputs: verdict.reason = Reason::guard; break;
    case LaunchError::Kind::bad_answer: verdict.reason = Reason::bad_answer; break;
    case LaunchError::Kind::process_ended:
      verdict.status = Status::crash;
      verdict.reason = Reason::process_ended;
      break;
    case LaunchError::Kind::timed_out:
      verdict.status = Status::hang;
      verdict.reason = Reason::timed_out;
      break;
    case LaunchError::Kind::skipped: verdict.status = Status::skipped; break;
  }
}

RankLaunch::RankLaunch(const Plan& plan, const ArenaLayout& arena, const Kernel& kernel, Backend& backend, LaunchMemory& memory,
                       std::int64_t rank, std::int64_t seat, int threads)
    : plan_(plan),
      arena_(arena),
      kernel_(kernel),
      backend_(backend),
      memory_(memory),
      rank_(rank),
      seat_(seat),
      threads_(threads) {
  memory_.reserve(arena.bytes);
}

void RankLaunch::fill(HostMemory& image, const Side& side, Poison poison) {
  fill_arena(image.span().first(static_cast<std::size_t>(arena_.bytes)), arena_, plan_, *side.inputs, rank_, poison);
  for (const auto& [name, bytes] : side.held) {
    const ArenaBuffer& buffer = arena_.buffer(name);
    if (static_cast<std::int64_t>(bytes->size()) != buffer.bytes)
      throw HarnessError("what is held of " + name + " is of another size");
    if (!bytes->empty()) std::memcpy(image.data() + buffer.offset, bytes->data(), bytes->size());
    // What this launch must write holds poison as ever, whoever wrote there before.
    for (const Span& span : write_set(plan_, plan_.tensor(name), *side.inputs, rank_))
      poison_again(image.span(), buffer, span.begin, span.end, poison);
  }
}

LaunchError RankLaunch::launch(Placement& placement, const HostMemory& before, const std::shared_ptr<std::byte>& after) {
  const auto bytes = static_cast<std::size_t>(arena_.bytes);
  std::memcpy(after.get(), before.data(), bytes);
  LaunchError refused = placement.run(kernel_, {after.get(), bytes}, threads_);
  add_touched(placement.touched());
  return refused;
}

void RankLaunch::add_touched(const std::vector<Touched>& more) {
  for (const Touched& page : more) {
    Touched& known = touched_.try_emplace({page.buffer, page_of(page.byte)}, page).first->second;
    if (known.bytes < page.bytes) known = page;
  }
}

LaunchError RankLaunch::run(const Side& a, const Side& b) {
  if (LaunchError declined = decline(kernel_, plan_); !declined.empty()) return declined;
  a_ = a;
  b_ = b;
  fill(memory_.before_a, a, Poison::A);
  fill(memory_.before_b, b, Poison::B);
  placement_a_ = backend_.place(plan_, *a.inputs, rank_, arena_, seat_);
  if (LaunchError refused = launch(*placement_a_, memory_.before_a, memory_.after_a); !refused.empty()) return refused;
  if (!one_sided()) placement_b_ = backend_.place(plan_, *b.inputs, rank_, arena_, seat_);
  return launch(one_sided() ? *placement_a_ : *placement_b_, memory_.before_b, memory_.after_b);
}

const ArenaBuffer& RankLaunch::buffer_of(const TensorPlan& tensor) const {
  return arena_.buffer(tensor.in_place_of.empty() ? tensor.name : tensor.in_place_of);
}

bool RankLaunch::runs_differ() const {
  for (const TensorPlan& tensor : plan_.tensors) {
    if (tensor.role == Role::in) continue;
    const ArenaBuffer& buffer = buffer_of(tensor);
    for (const Span& span : write_set(plan_, tensor, *a_.inputs, rank_)) {
      const std::int64_t at = buffer.place(span.begin);
      const auto bytes = static_cast<std::size_t>(span.end - span.begin);
      if (span.duty == Duty::must && std::memcmp(memory_.after_a.get() + at, memory_.after_b.get() + at, bytes) != 0)
        return true;
    }
  }
  return false;
}

bool RankLaunch::clean() {
  if (runs_differ() || !touched_.empty()) return false;
  for (const TensorPlan& tensor : plan_.tensors) {
    if (tensor.role == Role::in) continue;
    const ArenaBuffer& buffer = buffer_of(tensor);
    const auto untouched = [&](std::int64_t begin, std::int64_t end) {
      bool same = true;
      buffer.each_part(begin, end, [&](std::int64_t from, std::int64_t to) {
        const auto at = static_cast<std::size_t>(buffer.place(from)), bytes = static_cast<std::size_t>(to - from);
        same = same && std::memcmp(memory_.after_a.get() + at, memory_.before_a.data() + at, bytes) == 0 &&
               std::memcmp(memory_.after_b.get() + at, memory_.before_b.data() + at, bytes) == 0;
      });
      return same;
    };
    std::int64_t at = -buffer.before;
    for (const Span& span : write_set(plan_, tensor, *a_.inputs, rank_)) {
      if (!untouched(at, span.begin)) return false;
      at = span.end;
    }
    if (!untouched(at, buffer.bytes + buffer.after)) return false;
  }
  return placement_a_->changed_inputs().empty() && (!placement_b_ || placement_b_->changed_inputs().empty());
}

const std::map<std::string, std::string>& RankLaunch::digests() {
  if (!digests_.empty()) return digests_;
  const Images images{
      memory_.before_a.data(), memory_.before_b.data(), memory_.after_a.get(), memory_.after_b.get(), nullptr, one_sided()};
  for (const TensorPlan& tensor : plan_.tensors) {
    if (tensor.role == Role::in) continue;
    const ArenaBuffer& buffer = buffer_of(tensor);
    digests_[tensor.name] = digest_buffer(tensor, buffer, write_set(plan_, tensor, *a_.inputs, rank_), images);
  }
  return digests_;
}

std::map<std::string, std::string> RankLaunch::portable_digests(const Expected& expected) const {
  const Images images{
      memory_.before_a.data(), memory_.before_b.data(), memory_.after_a.get(), memory_.after_b.get(), nullptr, one_sided()};
  std::map<std::string, std::string> digests;
  for (const TensorPlan& tensor : plan_.tensors) {
    if (tensor.role == Role::in) continue;
    const ArenaBuffer& buffer = buffer_of(tensor);
    digests[tensor.name] =
        digest_buffer(tensor, buffer, write_set(plan_, tensor, *a_.inputs, rank_), images,
                      restate_admissible(plan_, tensor, buffer, expected, *a_.inputs, rank_, images.after_a));
  }
  return digests;
}

void RankLaunch::each_written(std::string_view name,
                              const std::function<void(const Span&, std::span<const std::byte>)>& f) const {
  const TensorPlan& tensor = plan_.tensor(name);
  const ArenaBuffer& buffer = buffer_of(tensor);
  for (const Span& span : write_set(plan_, tensor, *a_.inputs, rank_)) {
    if (span.duty != Duty::must) continue;
    f(span, {memory_.after_a.get() + buffer.place(span.begin), static_cast<std::size_t>(span.end - span.begin)});
  }
}

LaunchFindings RankLaunch::judge(const Expected& expected, const Taint& taint, const std::vector<std::string>& consumed) {
  LaunchFindings all;
  Images images{
      memory_.before_a.data(), memory_.before_b.data(), memory_.after_a.get(), memory_.after_b.get(), nullptr, one_sided(), {}};
  for (const auto& [page, touched] : touched_) images.touched.push_back(touched);
  bool again = false;
  for (const TensorPlan& tensor : plan_.tensors) {
    if (tensor.role == Role::in) continue;
    const std::vector<Span> spans = write_set(plan_, tensor, *a_.inputs, rank_);
    const auto look = [&] {
      return examine(plan_, tensor, arena_, spans, expected, taint, *a_.inputs, rank_, images, threads_);
    };
    BufferFindings findings = look();
    if (findings.runs_differ) {
      // A refusal here would be news, but what the two runs showed stands without the third.
      const std::shared_ptr<std::byte> third = memory_.again_a();
      if (!again && launch(*placement_a_, memory_.before_a, third).empty()) images.again_a = third.get();
      again = true;
      findings = look();
    }
    all.compared += findings.compared;
    all.tainted += findings.tainted;
    all.left_out += findings.left_out;
    all.must_write += findings.must_write;
    all.written += findings.written;
    all.guarded += findings.guarded;
    if (all.worst.buffer.empty() || findings.worst.fraction > all.worst.fraction) all.worst = findings.worst;
    for (Violation& violation : findings.violations) all.violations.push_back(std::move(violation));
    const ArenaBuffer& buffer = buffer_of(tensor);
    if (std::find(consumed.begin(), consumed.end(), tensor.name) != consumed.end())
      all.consumed[tensor.name] = digest_consumed(buffer, spans);
  }
  all.digests = digests();
  std::vector<ChangedInput> changed = placement_a_->changed_inputs();
  if (placement_b_) {
    for (ChangedInput& input : placement_b_->changed_inputs()) {
      const auto same = [&](const ChangedInput& other) { return other.name == input.name; };
      if (std::none_of(changed.begin(), changed.end(), same)) changed.push_back(std::move(input));
    }
  }
  for (const ChangedInput& input : changed) {
    Violation violation;
    violation.reason = Reason::input_changed;
    violation.buffer = input.name;
    violation.rank = rank_;
    violation.count = input.bytes;
    violation.first = {{{input.first}, "", "another byte", "the byte that was placed"}};
    all.violations.push_back(std::move(violation));
  }
  return all;
}

std::string RankLaunch::digest_consumed(const ArenaBuffer& buffer, const std::vector<Span>& spans) const {
  Sha256 sha;
  for (const Span& span : spans) {
    if (span.duty != Duty::must) continue;
    const std::byte* bytes = memory_.after_a.get() + buffer.place(span.begin);
    sha.add(std::span(bytes, static_cast<std::size_t>(span.end - span.begin)));
  }
  return sha.hex();
}

std::span<const std::byte> RankLaunch::after(Poison poison, std::string_view name) const {
  const ArenaBuffer& buffer = arena_.buffer(name);
  const std::byte* image = (poison == Poison::A ? memory_.after_a : memory_.after_b).get();
  return {image + buffer.offset, static_cast<std::size_t>(buffer.bytes)};
}

std::span<const std::byte> RankLaunch::before(Poison poison, std::string_view name) const {
  const ArenaBuffer& buffer = arena_.buffer(name);
  const std::byte* image = (poison == Poison::A ? memory_.before_a : memory_.before_b).data();
  return {image + buffer.offset, static_cast<std::size_t>(buffer.bytes)};
}

}  // namespace dcpcheck
