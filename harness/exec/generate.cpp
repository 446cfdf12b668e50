#include "harness/exec/generate.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "harness/core/chunk.hpp"
#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/core/parallel.hpp"
#include "harness/core/recipe.hpp"
#include "harness/exec/certainty.hpp"
#include "harness/exec/launch.hpp"
#include "harness/exec/miniature.hpp"
#include "harness/exec/reference_memory.hpp"
#include "harness/exec/stages.hpp"

namespace dcpcheck {
namespace {

// A tensor as the two runs have it.
struct Observed {
  Bytes a, b;
  // b, with what rests on bytes that went astray turned into something else: those are the same in both runs, and the
  // reference is to tell what depends on them. Empty: nothing rests on such bytes.
  Bytes probe;

  const Bytes& probed() const { return probe.empty() ? b : probe; }
  bool same() const { return probe.empty() && a == b; }
};

Observed same(const Bytes& bytes) { return {bytes, bytes, {}}; }

bool all_same(const std::vector<Observed>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Observed& tensor) { return tensor.same(); });
}

// Turns an element of a probe into another one.
void turn(Bytes& probe, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) probe[i] = ~probe[i];
}

// A cache, and which of its bytes a launch wrote where nothing may be.
struct Cache {
  Observed bytes;
  std::vector<bool> stray;  // empty: none
};

// Makes a tensor of others, on each side by itself; once, where the others are the same on all of them.
template <class Make>
Observed on_both(bool alike, Make make) {
  if (alike) return same(make([](const Observed& from) -> const Bytes& { return from.a; }));
  Observed made{make([](const Observed& from) -> const Bytes& { return from.a; }),
                make([](const Observed& from) -> const Bytes& { return from.b; }),
                make([](const Observed& from) -> const Bytes& { return from.probed(); })};
  if (made.probe == made.b) made.probe.clear();
  return made;
}

// What a launch left behind.
struct Launched {
  Plan plan;
  std::map<std::string, Observed, std::less<>> outputs;  // caches too
  std::shared_ptr<const Expected> expected;
  Taint taint;
  const Observed& out(std::string_view name) const { return outputs.find(name)->second; }
};

// Ends a run: no launch can follow.
struct Stopped {
  Status status = Status::fail;
  Reason reason = Reason::none;
  std::string why;
};

template <class T>
std::vector<T> numbers_in(std::span<const std::byte> bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

template <class T>
Bytes bytes_of(const std::vector<T>& numbers) {
  Bytes bytes(numbers.size() * sizeof(T));
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// Columns [from, from + count) bytes of rows of `stride` bytes, for `rows` rows from row `first` on.
Bytes columns_of(const Bytes& all, std::int64_t first, std::int64_t rows, std::int64_t stride, std::int64_t from,
                 std::int64_t count) {
  Bytes out(static_cast<std::size_t>(rows * count));
  for (std::int64_t row = 0; row < rows && count > 0; ++row) {
    std::memcpy(out.data() + row * count, all.data() + (first + row) * stride + from, static_cast<std::size_t>(count));
  }
  return out;
}

void append(Bytes& out, const Bytes& more) { out.insert(out.end(), more.begin(), more.end()); }

class Generation {
 public:
  Generation(const Prepared& prepared, const Parts& parts, Backend& backend, const RunOptions& options, ReferenceMemory& memory)
      : plan_(prepared.plan),
        value_(prepared.plan.value),
        inputs_(prepared.inputs),
        parts_(parts),
        backend_(backend),
        options_(options),
        references_(memory),
        tp_(value_.geometry.tp),
        world_(value_.geometry.world_size),
        heads_(value_.integer("heads")),
        width_(value_.integer("v_head_dim")),
        blocks_(blocks_of(*parts.at("compute_slot_mapping").op, value_)),
        caches_(static_cast<std::size_t>(tp_)),
        pending_(static_cast<std::size_t>(tp_)),
        workers_(static_cast<int>(std::min<std::int64_t>(options.threads, tp_))),
        threads_(std::max(options.threads / workers_, 1)) {
    for (std::int64_t rank = 0; rank < tp_; ++rank) images_.emplace_back(backend);
    const auto prompt = numbers_in<std::int32_t>(inputs_.get("prompt", 0));
    auto at = prompt.begin();
    for (const Request& request : value_.geometry.batch) {
      const auto end = at + (request.cached + request.uncached);
      ids_.push_back({{at, end}, {at, end}});
      prompts_.push_back(request.cached + request.uncached);
      at = end;
    }
  }

  CaseResult run(std::string inputs_digest) {
    const auto start = std::chrono::steady_clock::now();
    CaseResult result;
    result.inputs_digest = std::move(inputs_digest);
    try {
      for (const Stage& stage : stages_of(value_)) run_stage(stage);
    } catch (const Stopped& stopped) {
      verdict_.status = verdict_.violations.empty() ? stopped.status : Status::fail;
      verdict_.reason = verdict_.violations.empty() ? stopped.reason : verdict_.violations.front().reason;
      verdict_.detail = "stopped at " + stage_ + ": " + stopped.why;
    }
    if (verdict_.status == Status::skipped) {
      result.verdict = std::move(verdict_);
      return result;
    }
    result.tokens = tokens();
    if (result.tokens->ids != result.tokens->poison_b_ids) {
      Violation violation;
      violation.reason = Reason::uninitialised_read;
      violation.buffer = "tokens";
      violation.rows = static_cast<std::int64_t>(ids_.size());
      for (std::size_t request = 0; request < ids_.size(); ++request) {
        const auto& a = result.tokens->ids[request];
        const auto& b = result.tokens->poison_b_ids[request];
        for (std::size_t i = 0; i < a.size(); ++i) {
          if (a[i] == b[i]) continue;
          ++violation.count;
          if (violation.first.size() < 5)
            violation.first.push_back({{static_cast<std::int64_t>(request), static_cast<std::int64_t>(i)},
                                       "",
                                       std::to_string(a[i]) + ", then " + std::to_string(b[i]),
                                       "the same in every run"});
        }
      }
      verdict_.violations.push_back(std::move(violation));
    }
    conclude(verdict_);
    result.verdict = std::move(verdict_);
    for (const auto& [name, launches] : chains_) result.outputs[name] = combine_digests(launches);
    const auto sure = [](const TokenStep& step) { return step.known && step.conclusive(); };
    if (options_.portable && result.verdict.status == Status::pass && std::all_of(steps_.begin(), steps_.end(), sure))
      result.portable["tokens"] = result.tokens->digest;
    auto all = result.outputs;
    all["tokens"] = result.tokens->digest;
    result.all_digest = combine_digests(all);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

 private:
  using Given = std::map<std::string, const Observed*, std::less<>>;

  // ---- one launch ----

  // The inputs of a launch on one side, from what it is given; what follows from its geometry is made.
  template <class Choose>
  Inputs bind(const Plan& plan, const Given& given, std::int64_t rank, Choose choose) const {
    Inputs inputs;
    for (const TensorPlan& tensor : plan.tensors) {
      if (tensor.role != Role::in) continue;
      const auto found = given.find(tensor.name);
      Bytes& storage = inputs.shared[tensor.name];
      if (found != given.end()) {
        storage = choose(*found->second);
      } else if (plan_.find(tensor.name) != nullptr && plan_.tensor(tensor.name).role == Role::in) {
        storage = inputs_.get(tensor.name, 0);
      } else if (parse_recipe(tensor.recipe).of_geometry()) {
        storage = make_input(plan, tensor, rank);
      } else {
        throw HarnessError("nothing gives the input " + tensor.name + " of " + plan.op->name);
      }
      if (static_cast<std::int64_t>(storage.size()) != tensor.bytes())
        throw HarnessError("the input " + tensor.name + " of " + plan.op->name + " is given in another size");
    }
    return inputs;
  }

  // Launches `name` on the plan of `part` as rank `rank` of it, for rank `label` of the run, and judges it. `keep` names the
  // outputs that something reads; caches are kept always.
  Launched launch(const std::string& name, const Case& part_value, std::int64_t rank, std::int64_t label, const Given& given,
                  const std::vector<std::string>& keep, const std::string& round = {}) {
    check_interrupted(options_);
    std::vector<Pending>& own = pending_[static_cast<std::size_t>(label)];
    const Part& part = parts_.at(name);
    Launched done;
    done.plan = make_plan(*part.op, part_value, std::numeric_limits<std::int64_t>::max(), name);
    // Poison of its own for each launch that can read what another one left: by round, rank and how many came before.
    const ArenaLayout arena = arena_layout(done.plan, 1 + 31 * rounds_ + 8 * label + 2 * static_cast<std::int64_t>(own.size()));
    Side a, b;
    std::set<std::string> held;
    for (const TensorPlan& tensor : done.plan.tensors) {
      if (tensor.role != Role::cache) continue;
      const Observed& cache = caches_[static_cast<std::size_t>(label)][tensor.name].bytes;
      held.insert(tensor.name);
      if (cache.a.empty()) continue;  // the first launch: poison
      a.held[tensor.name] = &cache.a;
      b.held[tensor.name] = &cache.b;
    }
    const Inputs inputs_a = bind(done.plan, given, rank, [](const Observed& from) -> const Bytes& { return from.a; });
    const bool differ =
        std::any_of(given.begin(), given.end(), [](const auto& entry) { return entry.second->a != entry.second->b; });
    const bool astray = std::any_of(given.begin(), given.end(), [](const auto& entry) { return !entry.second->probe.empty(); });
    Inputs inputs_b;
    if (differ) inputs_b = bind(done.plan, given, rank, [](const Observed& from) -> const Bytes& { return from.b; });
    a.inputs = &inputs_a;
    b.inputs = differ ? &inputs_b : &inputs_a;
    LaunchMemory& images = images_[workers_ == 1 ? 0 : static_cast<std::size_t>(label)];
    RankLaunch launch(done.plan, arena, *part.kernel, backend_, images, rank, label, threads_);
    if (const LaunchError error = launch.run(a, b); !error.empty()) {
      Verdict ended;
      end_at(error, name + ", rank " + std::to_string(label), ended);
      throw Stopped{ended.status, ended.reason, std::move(ended.detail)};
    }

    const ReferenceOptions asked{threads_, part.kernel->lanes, value_.integer("judged_rows")};
    const std::string question = question_of(done.plan, inputs_a, rank, asked);
    const auto ask = [&](const std::string& about, const Inputs& inputs) {
      return references_.ask(about, *part.reference, done.plan, inputs, rank, asked);
    };
    // Run A is judged on what run A was given: that is sound whatever the other one had. What rests on other memory is
    // looked for only where it can show, or where bytes went astray.
    const bool clean = !astray && launch.clean();
    std::optional<LaunchFindings> findings;
    if (clean) findings = references_.judged(question, launch.digests());
    // Of attention and merges the answers are needed once more, to say how sure a token is.
    if (!findings || done.plan.find("lse") != nullptr) done.expected = ask(question, inputs_a);
    if (!findings) {
      if (astray || (differ && launch.runs_differ())) {
        const Inputs probe = bind(done.plan, given, rank, [](const Observed& from) -> const Bytes& { return from.probed(); });
        done.taint = taint_between(*done.expected, *ask(question_of(done.plan, probe, rank, asked), probe));
      }
      findings = launch.judge(*done.expected, done.taint, {});
      if (clean && findings->violations.empty()) references_.remember(question, *findings);
    }
    own.push_back({std::move(*findings), name, round});
    for (const TensorPlan& tensor : done.plan.tensors) {
      if (tensor.role == Role::in) continue;
      const bool cache = held.contains(tensor.name);
      if (!cache && std::find(keep.begin(), keep.end(), tensor.name) == keep.end()) continue;
      Observed observed{bytes_after(launch, Poison::A, tensor.name), bytes_after(launch, Poison::B, tensor.name), {}};
      if (cache) {
        Cache& kept = caches_[static_cast<std::size_t>(label)][tensor.name];
        kept.stray = stray_after(launch, done.plan, tensor, inputs_a, rank, kept.stray);
        if (!kept.stray.empty()) observed.probe = observed.b;
        for (std::size_t i = 0; i < kept.stray.size(); ++i)
          if (kept.stray[i]) turn(observed.probe, i, 1);
        kept.bytes = std::move(observed);
        continue;
      }
      // What is tainted and yet the same in both runs must still show in what reads it.
      if (const auto tainted = done.taint.find(tensor.name); tainted != done.taint.end()) {
        const auto size = static_cast<std::size_t>(size_of(tensor.dtype));
        observed.probe = observed.b;
        for (std::size_t i = 0; i < tainted->second.size(); ++i) {
          if (tainted->second[i] && std::memcmp(&observed.a[i * size], &observed.b[i * size], size) == 0)
            turn(observed.probe, i * size, size);
        }
      }
      done.outputs[tensor.name] = std::move(observed);
    }
    return done;
  }

  static Bytes bytes_after(const RankLaunch& launch, Poison poison, const std::string& name) {
    const auto bytes = launch.after(poison, name);
    return {bytes.begin(), bytes.end()};
  }

  // The cache's bytes that were ever written where nothing may be, and not since then where something must be.
  static std::vector<bool> stray_after(const RankLaunch& launch, const Plan& plan, const TensorPlan& tensor,
                                       const Inputs& inputs, std::int64_t rank, std::vector<bool> stray) {
    const auto was = launch.before(Poison::A, tensor.name), is = launch.after(Poison::A, tensor.name);
    const auto mark = [&](std::int64_t from, std::int64_t to) {
      const auto count = static_cast<std::size_t>(to - from);
      if (count == 0 || std::memcmp(was.data() + from, is.data() + from, count) == 0) return;
      stray.resize(is.size(), false);
      for (auto i = static_cast<std::size_t>(from); i < static_cast<std::size_t>(to); ++i)
        if (was[i] != is[i]) stray[i] = true;
    };
    std::int64_t at = 0;
    for (const Span& span : write_set(plan, tensor, inputs, rank)) {
      mark(at, span.begin);
      at = span.end;
      for (std::int64_t i = span.begin; !stray.empty() && i < span.end; ++i) stray[static_cast<std::size_t>(i)] = false;
    }
    mark(at, static_cast<std::int64_t>(is.size()));
    return stray;
  }

  // What a rank's launches found since the ranks were last together.
  struct Pending {
    LaunchFindings findings;
    std::string op, round;
  };

  // Calls f(rank) for every rank, several at a time. For what launches nothing; else see on_ranks.
  template <class F>
  void each_rank(F f) const {
    parallel_parts(tp_, workers_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t rank = begin; rank < end; ++rank) f(rank);
    });
  }

  // Calls f(rank) for every rank, several at a time; what their launches found is then noted by rank. Where some ended the
  // run, the first of them does.
  template <class F>
  void on_ranks(F f) {
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(tp_));
    each_rank([&](std::int64_t rank) {
      try {
        f(rank);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
    ++rounds_;
    for (std::int64_t rank = 0; rank < tp_; ++rank) {
      for (Pending& one : pending_[static_cast<std::size_t>(rank)]) record(std::move(one), rank);
      pending_[static_cast<std::size_t>(rank)].clear();
      if (errors[static_cast<std::size_t>(rank)]) std::rethrow_exception(errors[static_cast<std::size_t>(rank)]);
    }
  }

  void record(Pending&& one, std::int64_t rank) {
    for (Violation& violation : one.findings.violations) {
      violation.stage = stage_;
      violation.op = one.op;
      violation.rank = rank;
    }
    one.findings.worst.rank = rank;
    const std::string prefix = "rank" + std::to_string(rank) + "/" + stage_.substr(0, stage_.find('.')) + "." + one.op + ".";
    for (const auto& [buffer, digest] : one.findings.digests) chains_[prefix + buffer][stage_ + one.round] = digest;
    add_findings(std::move(one.findings), verdict_);
  }

  Case part_of(const std::string& name, const std::vector<Slice>& slices) const {
    return part_case(*parts_.at(name).op, value_, slices, blocks_);
  }

  // ---- from rank to rank ----

  // A tensor of rank `from` that rank `to` needs.
  struct Sent {
    std::int64_t from = 0, to = 0;
    const Observed* tensor = nullptr;
  };

  // The tensors as they arrive, in order. What both runs have alike is carried once; the probe is no rank's, and stays here.
  std::vector<Observed> carry(const std::vector<Sent>& sent) {
    check_interrupted(options_);
    std::vector<Parcel> parcels;
    for (const Sent& one : sent) {
      parcels.push_back({one.from, one.to, &one.tensor->a});
      if (one.tensor->a != one.tensor->b) parcels.push_back({one.from, one.to, &one.tensor->b});
    }
    std::vector<Bytes> bytes;
    try {
      bytes = backend_.carry(parcels);
    } catch (const RankLost& lost) {
      throw Stopped{lost.status, lost.status == Status::hang ? Reason::timed_out : Reason::process_ended, lost.what()};
    }
    std::vector<Observed> arrived;
    auto next = bytes.begin();
    for (const Sent& one : sent) {
      Observed tensor{std::move(*next++), {}, one.tensor->probe};
      tensor.b = one.tensor->a != one.tensor->b ? std::move(*next++) : tensor.a;
      arrived.push_back(std::move(tensor));
    }
    return arrived;
  }

  // What every rank gets of the ranks of its DCP group, in their order: `count` tensors of each, which f(peer, rank, i) has.
  template <class F>
  std::vector<std::vector<Observed>> from_group(std::int64_t count, F f) {
    std::vector<Sent> sent;
    for (std::int64_t rank = 0; rank < tp_; ++rank) {
      const std::int64_t group = rank / world_ * world_;
      for (std::int64_t peer = group; peer < group + world_; ++peer)
        for (std::int64_t i = 0; i < count; ++i) sent.push_back({peer, rank, &f(peer, rank, i)});
    }
    std::vector<Observed> arrived = carry(sent);
    std::vector<std::vector<Observed>> by_rank(static_cast<std::size_t>(tp_));
    auto next = std::make_move_iterator(arrived.begin());
    for (std::vector<Observed>& mine : by_rank) {
      mine.assign(next, next + world_ * count);
      next += world_ * count;
    }
    return by_rank;
  }

  // ---- one stage ----

  void run_stage(const Stage& stage) {
    stage_ = stage.name;
    const std::int64_t tokens = stage.tokens();
    positions_.clear();
    std::vector<std::int32_t> ids_a, ids_b;
    for (const Slice& slice : stage.slices) {
      const auto& [a, b] = ids_[static_cast<std::size_t>(slice.request)];
      for (std::int64_t i = slice.cached; i < slice.cached + slice.tokens; ++i) {
        positions_.push_back(i);
        ids_a.push_back(a[static_cast<std::size_t>(i)]);
        ids_b.push_back(b[static_cast<std::size_t>(i)]);
      }
    }
    std::vector<std::map<std::string, Observed>> slots(static_cast<std::size_t>(tp_));
    on_ranks([&](std::int64_t rank) { slots[static_cast<std::size_t>(rank)] = map_slots(stage, rank); });
    std::map<std::string, Observed, std::less<>> rows;
    for (const char* table : {"q_c", "kv_c", "k_pe", "index_k"}) {
      if (plan_.find(table) == nullptr) continue;
      rows[table] = {miniature::embed(plan_, inputs_, table, ids_a), miniature::embed(plan_, inputs_, table, ids_b), {}};
    }
    std::vector<Launched> norms(static_cast<std::size_t>(tp_));
    on_ranks([&](std::int64_t rank) {
      Given given;
      for (const auto& [name, observed] : rows) given[name] = &observed;
      for (const auto& [name, observed] : slots[static_cast<std::size_t>(rank)]) given[name] = &observed;
      norms[static_cast<std::size_t>(rank)] = normalise(stage, rank, given);
    });
    if (stage.kind == Stage::Kind::prefill) prefill(stage, norms);
    if (stage.kind == Stage::Kind::decode) decode(stage, norms, tokens);
  }

  // The slots of the launch's tokens, by the input of fused_norm_rope that takes them.
  std::map<std::string, Observed> map_slots(const Stage& stage, std::int64_t rank) {
    const Case part = part_of("compute_slot_mapping", stage.slices);
    std::vector<std::int32_t> rows(stage.slices.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i);
    std::map<std::string, Observed> tensors;
    tensors["idx_mapping"] = same(bytes_of(rows));
    for (const auto& [name, group] : part.geometry.caches) tensors["block_table." + name] = same(table_of(stage, name));
    Given given;
    for (const auto& [name, observed] : tensors) given[name] = &observed;
    const Launched done = launch("compute_slot_mapping", part, rank % world_, rank, given, {"slot_mapping"});
    const std::int64_t row = done.plan.capacity * 8;
    std::map<std::string, Observed> slots;
    std::int64_t index = 0;
    for (const auto& [name, group] : part.geometry.caches) {
      const Observed& all = done.out("slot_mapping");
      Observed mine = on_both(all.same(), [&](auto side) { return columns_of(side(all), index, 1, row, 0, row); });
      for (const Bytes* side : {&mine.a, &mine.b}) check_slots(*side, name, rank);
      slots[name == "mla" ? "slot_mapping" : "index_slot_mapping"] = std::move(mine);
      ++index;
    }
    const auto indexer = value_.geometry.caches.find("indexer");
    if (indexer != value_.geometry.caches.end() && indexer->second.slot_mapping == "same")
      slots["index_slot_mapping"] = slots.at("slot_mapping");
    return slots;
  }

  Bytes table_of(const Stage& stage, const std::string& group) const {
    std::vector<std::int32_t> rows;
    for (const Slice& slice : stage.slices) {
      const auto& row = blocks_.groups.at(group).table[static_cast<std::size_t>(slice.request)];
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return bytes_of(rows);
  }

  // Slots that no cache has, or that two tokens share, would be written out of the cache or raced for.
  void check_slots(const Bytes& bytes, const std::string& group, std::int64_t rank) const {
    const std::int64_t slots = blocks_.groups.at(group).blocks * value_.geometry.caches.at(group).kernel_block_size;
    std::set<std::int64_t> seen;
    for (const std::int64_t slot : numbers_in<std::int64_t>(bytes)) {
      if (slot < 0) continue;
      const bool twice = !seen.insert(slot).second;
      if (slot < slots && !twice) continue;
      throw Stopped{Status::fail, Reason::inadmissible,
                    "compute_slot_mapping gave the slot " + std::to_string(slot) + " of the " + group + " cache on rank " +
                        std::to_string(rank) + (twice ? " to two tokens" : ", which has " + std::to_string(slots)) +
                        ": what follows cannot be launched"};
    }
  }

  Launched normalise(const Stage& stage, std::int64_t rank, const Given& given) {
    const Case part = norm_case(*parts_.at("fused_norm_rope").op, value_, stage, blocks_);
    return launch("fused_norm_rope", part, rank, rank, given, {"q_c_out", "kv_c_out", "k_pe_out"});
  }

  // A rank's queries of heads [first, first + heads), from the rows of `norm`.
  Observed queries(const Launched& norm, std::int64_t first, std::int64_t heads) const {
    const Observed& rows = norm.out("q_c_out");
    return on_both(rows.same(), [&](auto side) {
      return miniature::queries(plan_, inputs_, side(rows), positions_, first, heads, threads_);
    });
  }

  Case attention(const std::vector<Slice>& slices, bool causal) const {
    Case part = part_of("dense_prefill", slices);
    part.params["causal"] = causal;
    part.params["heads"] = heads_;
    return part;
  }

  void prefill(const Stage& stage, const std::vector<Launched>& norms) {
    struct Rank {
      Observed q;
      std::vector<Launched> parts, merges;  // the first part is the launch's own tokens
    };
    std::vector<Rank> ranks(static_cast<std::size_t>(tp_));
    on_ranks([&](std::int64_t rank) {
      Rank& mine = ranks[static_cast<std::size_t>(rank)];
      const Launched& norm = norms[static_cast<std::size_t>(rank)];
      mine.q = queries(norm, rank * heads_, heads_);
      Given given{{"q", &mine.q}, {"kv_c", &norm.out("kv_c_out")}};
      if (norm.outputs.contains("k_pe_out")) given["k_pe"] = &norm.out("k_pe_out");
      mine.parts.push_back(launch("dense_prefill", attention(stage.slices, true), rank, rank, given, {"out", "lse"}));
    });
    const std::vector<ChunkRange> chunks = context_chunks(value_, stage.slices);
    for (std::size_t index = 0; index < chunks.size(); ++index) {
      const std::string round = "/context." + std::to_string(index);
      const std::vector<Observed> contexts = gather_context(stage, chunks[index], round);
      on_ranks([&](std::int64_t rank) {
        Rank& mine = ranks[static_cast<std::size_t>(rank)];
        Case part = attention(stage.slices, false);
        part.geometry.chunk = chunks[index];
        const Keys keys = split(contexts[static_cast<std::size_t>(rank)]);
        Given given{{"q", &mine.q}, {"context_kv_c", &keys.kv_c}, {"context_k_pe", &keys.k_pe}};
        mine.parts.push_back(launch("dense_prefill", part, rank, rank, given, {"out", "lse"}, round));
        // The context's chunks first, one after the other; the launch's own tokens last.
        if (index > 0) {
          const Launched& before = mine.merges.empty() ? mine.parts[1] : mine.merges.back();
          mine.merges.push_back(merge(stage, before, mine.parts.back(), rank, round));
        }
        if (index + 1 == chunks.size()) {
          const Launched& before = mine.merges.empty() ? mine.parts[1] : mine.merges.back();
          mine.merges.push_back(merge(stage, before, mine.parts.front(), rank, "/own"));
        }
      });
    }
    // A request whose prompt ends here has its first token.
    std::vector<Final> finals;
    std::int64_t row = 0;
    for (const Slice& slice : stage.slices) {
      row += slice.tokens;
      if (slice.cached + slice.tokens < prompts_[static_cast<std::size_t>(slice.request)]) continue;
      Final final{slice.request, {}};
      for (std::int64_t rank = 0; rank < tp_; ++rank) {
        const Rank& mine = ranks[static_cast<std::size_t>(rank)];
        Final::Rank one{&(mine.merges.empty() ? mine.parts.front() : mine.merges.back()), row - 1, 0, {}, {}};
        for (const Launched& part : mine.parts) one.parts.push_back({part.expected.get(), &part.taint, row - 1, 0});
        for (const Launched& part : mine.merges) one.merges.push_back({part.expected.get(), &part.taint, row - 1, 0});
        final.ranks.push_back(std::move(one));
      }
      finals.push_back(std::move(final));
    }
    choose(finals);
  }

  Launched merge(const Stage& stage, const Launched& before, const Launched& next, std::int64_t rank,
                 const std::string& round) {
    Case part = part_of("merge_chunks", stage.slices);
    part.params["heads"] = heads_;
    const Given given{{"prefix_out", &before.out("out")},
                      {"prefix_lse", &before.out("lse")},
                      {"suffix_out", &next.out("out")},
                      {"suffix_lse", &next.out("lse")}};
    return launch("merge_chunks", part, 0, rank, given, {"out", "lse"}, round);
  }

  // Each rank's rows of the chunk; then, on every rank, those of its DCP group put together by position.
  std::vector<Observed> gather_context(const Stage& stage, const ChunkRange& chunk, const std::string& round) {
    std::vector<Launched> gathered(static_cast<std::size_t>(tp_));
    on_ranks(
        [&](std::int64_t rank) { gathered[static_cast<std::size_t>(rank)] = gather(stage.slices, stage, chunk, rank, round); });
    const auto arrived = from_group(1, [&](std::int64_t peer, std::int64_t, std::int64_t) -> const Observed& {
      return gathered[static_cast<std::size_t>(peer)].out("workspace");
    });
    std::vector<Observed> contexts(static_cast<std::size_t>(tp_));
    on_ranks([&](std::int64_t rank) {
      Case part = part_of("reorg_context", stage.slices);
      part.geometry.chunk = chunk;
      part.params["width"] = value_.integer("kv_lora_rank") + value_.integer("qk_rope_head_dim");
      const std::vector<Observed>& workspaces = arrived[static_cast<std::size_t>(rank)];
      const Observed pieces = on_both(all_same(workspaces), [&](auto side) {
        Bytes all;
        for (const Observed& workspace : workspaces) append(all, side(workspace));
        return all;
      });
      const Given given{{"gathered", &pieces}};
      Launched done = launch("reorg_context", part, rank % world_, rank, given, {"context"}, round);
      contexts[static_cast<std::size_t>(rank)] = std::move(done.outputs.find("context")->second);
    });
    return contexts;
  }

  Launched gather(const std::vector<Slice>& slices, const Stage& stage, const ChunkRange& chunk, std::int64_t rank,
                  const std::string& round) {
    Case part = part_of("gather_cache", slices);
    part.geometry.chunk = chunk;
    const Observed table = same(table_of(stage, "mla"));
    const Given given{{"mla_cache", &caches_[static_cast<std::size_t>(rank)].at("mla_cache").bytes}, {"block_table", &table}};
    return launch("gather_cache", part, rank % world_, rank, given, {"workspace"}, round);
  }

  struct Keys {
    Observed kv_c, k_pe;
  };

  // Rows of kv_c | k_pe, taken apart.
  Keys split(const Observed& rows) const {
    const std::int64_t lora = value_.integer("kv_lora_rank") * 2, rope = value_.integer("qk_rope_head_dim") * 2;
    const bool alike = rows.same();
    const auto part = [&](std::int64_t from, std::int64_t count) {
      return on_both(alike, [&](auto side) {
        const Bytes& all = side(rows);
        return columns_of(all, 0, static_cast<std::int64_t>(all.size()) / (lora + rope), lora + rope, from, count);
      });
    };
    return {part(0, lora), part(lora, rope)};
  }

  void decode(const Stage& stage, const std::vector<Launched>& norms, std::int64_t tokens) {
    // The new token is in the cache by now: the context is all tokens, its own too.
    std::vector<Slice> held = stage.slices;
    for (Slice& slice : held) slice = {slice.request, slice.cached + slice.tokens, 0};
    const std::int64_t all_heads = heads_ * world_;  // of a DCP group: its ranks' queries are gathered
    const std::vector<Observed> all_queries = group_queries(norms, tokens);
    std::vector<Launched> parts(static_cast<std::size_t>(tp_));
    on_ranks([&](std::int64_t rank) {
      const std::int64_t group = rank / world_;
      const Launched gathered = gather(held, stage, {}, rank, "");
      std::vector<Observed> pieces;
      Case part = attention(held, false);
      part.geometry.tp = tp_ / world_;
      part.geometry.world_size = 1;
      part.geometry.interleave = 1;
      part.params["heads"] = all_heads;
      part.geometry.caches = {{"mla", {}}};
      const ChunkPlan chunk = plan_chunk(gathered.plan.value.geometry, gathered.plan.value.geometry.caches.at("mla"));
      // Each request's own rows, without what pads them to the longest rank's.
      const std::int64_t row_bytes = (value_.integer("kv_lora_rank") + value_.integer("qk_rope_head_dim")) * 2;
      std::int64_t first = 0;
      for (std::size_t i = 0; i < held.size(); ++i) {
        const std::int64_t valid = chunk.valid_rows(i, rank);
        part.geometry.batch[i] = {valid, 1};
        const Observed& workspace = gathered.out("workspace");
        pieces.push_back(on_both(
            workspace.same(), [&](auto side) { return columns_of(side(workspace), first, valid, row_bytes, 0, row_bytes); }));
        first += chunk.requests[i].padded;
      }
      const Observed rows = on_both(all_same(pieces), [&](auto side) {
        Bytes all;
        for (const Observed& piece : pieces) append(all, side(piece));
        return all;
      });
      const Keys keys = split(rows);
      const Observed& q = all_queries[static_cast<std::size_t>(rank)];
      const Given given{{"q", &q}, {"context_kv_c", &keys.kv_c}, {"context_k_pe", &keys.k_pe}};
      // NOLINTNEXTLINE(readability-suspicious-call-argument): `group` is the rank whose slice of the part `rank` takes
      parts[static_cast<std::size_t>(rank)] = launch("dense_prefill", part, group, rank, given, {"out", "lse"});
    });
    std::vector<Launched> merged(static_cast<std::size_t>(tp_));
    if (world_ > 1) merged = merge_groups(stage, parts, tokens);
    std::vector<Final> finals;
    for (std::size_t i = 0; i < stage.slices.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      Final final{stage.slices[i].request, {}};
      for (std::int64_t rank = 0; rank < tp_; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        const std::int64_t group = rank / world_ * world_, head = (rank - group) * heads_;
        Final::Rank one{world_ > 1 ? &merged[at] : &parts[at], row, 0, {}, {}};
        for (std::int64_t peer = group; peer < group + world_; ++peer) {
          const Launched& part = parts[static_cast<std::size_t>(peer)];
          one.parts.push_back({part.expected.get(), &part.taint, row, head});
        }
        if (world_ > 1) one.merges.push_back({merged[at].expected.get(), &merged[at].taint, row, 0});
        final.ranks.push_back(std::move(one));
      }
      finals.push_back(std::move(final));
    }
    choose(finals);
  }

  // For each rank the queries of its DCP group's heads, each peer's from that one's own rows.
  std::vector<Observed> group_queries(const std::vector<Launched>& norms, std::int64_t tokens) {
    std::vector<Observed> own(static_cast<std::size_t>(tp_)), all(static_cast<std::size_t>(tp_));
    each_rank([&](std::int64_t rank) {
      const auto at = static_cast<std::size_t>(rank);
      own[at] = queries(norms[at], rank * heads_, heads_);
    });
    const auto arrived = from_group(1, [&](std::int64_t peer, std::int64_t, std::int64_t) -> const Observed& {
      return own[static_cast<std::size_t>(peer)];
    });
    each_rank([&](std::int64_t rank) {
      const std::vector<Observed>& pieces = arrived[static_cast<std::size_t>(rank)];
      all[static_cast<std::size_t>(rank)] = on_both(all_same(pieces), [&](auto side) {
        Bytes rows;
        for (std::int64_t token = 0; token < tokens; ++token) {
          for (const Observed& piece : pieces) {
            const Bytes& from = side(piece);
            const auto row = static_cast<std::int64_t>(from.size()) / tokens;
            append(rows, columns_of(from, token, 1, row, 0, row));
          }
        }
        return rows;
      });
    });
    return all;
  }

  // Each rank's own heads of what the ranks of its group got over their keys, merged.
  std::vector<Launched> merge_groups(const Stage& stage, const std::vector<Launched>& parts, std::int64_t tokens) {
    // By rank, then by the peer whose heads they are: out, lse.
    std::vector<std::vector<Observed>> slices(static_cast<std::size_t>(tp_));
    each_rank([&](std::int64_t rank) {
      const Launched& part = parts[static_cast<std::size_t>(rank)];
      for (std::int64_t peer = 0; peer < world_; ++peer) {
        for (const auto& [name, width] : {std::pair("out", width_), std::pair("lse", std::int64_t{1})}) {
          const std::int64_t own = heads_ * width * 4;
          slices[static_cast<std::size_t>(rank)].push_back(on_both(
              false, [&](auto side) { return columns_of(side(part.out(name)), 0, tokens, world_ * own, peer * own, own); }));
        }
      }
    });
    const auto arrived = from_group(2, [&](std::int64_t peer, std::int64_t rank, std::int64_t i) -> const Observed& {
      return slices[static_cast<std::size_t>(peer)][static_cast<std::size_t>(rank % world_ * 2 + i)];
    });
    std::vector<Launched> merged(static_cast<std::size_t>(tp_));
    on_ranks([&](std::int64_t rank) {
      Case part = part_of("merge_ranks", stage.slices);
      part.params["heads"] = heads_;
      const std::vector<Observed>& pieces = arrived[static_cast<std::size_t>(rank)];
      const auto joined = [&](std::size_t first) {
        return on_both(false, [&](auto side) {
          Bytes all;
          for (std::size_t i = first; i < pieces.size(); i += 2) append(all, side(pieces[i]));
          return all;
        });
      };
      const Observed out = joined(0), lse = joined(1);
      const Given given{{"partial_out", &out}, {"partial_lse", &lse}};
      merged[static_cast<std::size_t>(rank)] = launch("merge_ranks", part, 0, rank, given, {"out", "lse"});
    });
    return merged;
  }

  // ---- tokens ----

  // Where a request's next token comes from: a row of each rank's outputs.
  struct Final {
    struct Rank {
      const Launched* launched = nullptr;
      std::int64_t row = 0, head = 0;
      std::vector<JudgedRow> parts, merges;
    };
    std::int64_t request = 0;
    std::vector<Rank> ranks;
  };

  // All heads' outputs of each request's row, as every rank has them once all have sent theirs.
  std::vector<Observed> rows_on_all(const std::vector<Final>& finals) {
    std::vector<Observed> own(static_cast<std::size_t>(tp_));  // of a rank, request by request
    const std::int64_t row = heads_ * width_ * 4;
    for (std::int64_t rank = 0; rank < tp_; ++rank) {
      Observed& mine = own[static_cast<std::size_t>(rank)];
      for (const Final& final : finals) {
        const Final::Rank& from = final.ranks[static_cast<std::size_t>(rank)];
        append(mine.a, columns_of(from.launched->out("out").a, from.row, 1, row, 0, row));
        append(mine.b, columns_of(from.launched->out("out").b, from.row, 1, row, 0, row));
      }
    }
    std::vector<Sent> sent;
    for (std::int64_t to = 0; to < tp_; ++to)
      for (std::int64_t from = 0; from < tp_; ++from) sent.push_back({from, to, &own[static_cast<std::size_t>(from)]});
    const std::vector<Observed> arrived = carry(sent);
    // The ranks agree on a token because each chooses it from the same bytes.
    const auto ranks = static_cast<std::size_t>(tp_);
    for (std::size_t i = ranks; i < arrived.size(); ++i) {
      const Observed& first = arrived[i % ranks];
      if (arrived[i].a != first.a || arrived[i].b != first.b)
        throw HarnessError("rank " + std::to_string(i / ranks) + " was brought other bytes of rank " +
                           std::to_string(i % ranks) + " than rank 0 by the transport " + backend_.transport());
    }
    std::vector<Observed> rows(finals.size());
    for (std::size_t i = 0; i < finals.size(); ++i) {
      for (std::size_t from = 0; from < ranks; ++from) {
        append(rows[i].a, columns_of(arrived[from].a, static_cast<std::int64_t>(i), 1, row, 0, row));
        append(rows[i].b, columns_of(arrived[from].b, static_cast<std::int64_t>(i), 1, row, 0, row));
      }
    }
    return rows;
  }

  void choose(const std::vector<Final>& finals) {
    if (finals.empty()) return;
    const auto table = numbers_in<float>(inputs_.get("logits", 0));
    const std::vector<Observed> rows = rows_on_all(finals);
    for (std::size_t i = 0; i < finals.size(); ++i) {
      const Final& final = finals[i];
      const auto a = numbers_in<float>(rows[i].a), b = numbers_in<float>(rows[i].b);
      std::optional<ExactOutputs> exact = ExactOutputs{};
      for (const Final::Rank& rank : final.ranks) {
        const auto own = exact ? exact_outputs(rank.parts, rank.merges, heads_, width_) : std::nullopt;
        if (!own) {
          exact.reset();
          continue;
        }
        exact->value.insert(exact->value.end(), own->value.begin(), own->value.end());
        exact->error.insert(exact->error.end(), own->error.begin(), own->error.end());
      }
      auto& ids = ids_[static_cast<std::size_t>(final.request)];
      ids.a.push_back(miniature::greedy(miniature::logits(plan_, inputs_, a)));
      ids.b.push_back(a == b ? ids.a.back() : miniature::greedy(miniature::logits(plan_, inputs_, b)));
      note_step(static_cast<std::int64_t>(ids.a.size()) - 1 - prompts_[static_cast<std::size_t>(final.request)],
                exact ? choice(*exact, table) : TokenStep{});
    }
  }

  // Of all requests' choices of a step the one stands that is the least sure.
  void note_step(std::int64_t index, TokenStep step) {
    step.stage = stage_;
    const auto at = static_cast<std::size_t>(index);
    if (at >= steps_.size()) {
      steps_.resize(at + 1);
      steps_[at] = std::move(step);
      return;
    }
    TokenStep& noted = steps_[at];
    const bool narrower = !step.known || (noted.known && step.margin * noted.bound < noted.margin * step.bound);
    if (noted.known && narrower) noted = std::move(step);
  }

  Tokens tokens() const {
    Tokens all;
    std::vector<std::int32_t> a, b;
    for (std::size_t request = 0; request < ids_.size(); ++request) {
      const auto from = static_cast<std::ptrdiff_t>(prompts_[request]);
      all.ids.emplace_back(ids_[request].a.begin() + from, ids_[request].a.end());
      all.poison_b_ids.emplace_back(ids_[request].b.begin() + from, ids_[request].b.end());
      a.insert(a.end(), all.ids.back().begin(), all.ids.back().end());
      b.insert(b.end(), all.poison_b_ids.back().begin(), all.poison_b_ids.back().end());
    }
    all.digest = Sha256().add(bytes_of(a)).hex();
    all.poison_b_digest = Sha256().add(bytes_of(b)).hex();
    all.steps = steps_;
    return all;
  }

  struct Ids {
    std::vector<std::int32_t> a, b;  // prompt and tokens
  };

  const Plan& plan_;
  const Case& value_;
  const Inputs& inputs_;
  const Parts& parts_;
  Backend& backend_;
  const RunOptions& options_;
  ReferenceMemory& references_;
  std::int64_t tp_, world_, heads_, width_;
  Blocks blocks_;
  std::vector<std::map<std::string, Cache, std::less<>>> caches_;  // by rank
  std::vector<Ids> ids_;                                           // by request
  std::vector<std::int64_t> prompts_;                              // tokens of each request's prompt
  std::vector<std::vector<Pending>> pending_;                      // by rank
  std::vector<LaunchMemory> images_;                               // by rank, or one for all
  int workers_, threads_;                                          // ranks at a time, and threads of each
  std::int64_t rounds_ = 0;                                        // of launches so far
  std::string stage_;
  std::vector<std::int64_t> positions_;  // of the stage's tokens
  Verdict verdict_;
  std::map<std::string, std::map<std::string, std::string>> chains_;  // "rank<r>/<op>.<buffer>" -> stage -> digest
  std::vector<TokenStep> steps_;
};

}  // namespace

void check_generate(const Ops& ops, const Op& op, const Case& value, std::int64_t budget, const std::string& source) {
  for (const auto& [name, group] : value.geometry.caches) {
    if (has_own_map(group) || group.slot_mapping == "same" || group.slot_mapping == "none") continue;
    throw InputError(source + ": /geometry/caches/" + name + "/slot_mapping is \"" + group.slot_mapping + "\", but " + op.name +
                     R"( takes "dcp", "replicated", "same" and "none": slots follow from positions there)");
  }
  const Blocks blocks = blocks_of(ops.at("compute_slot_mapping"), value);
  for (const Stage& stage : stages_of(value)) {
    if (stage.kind == Stage::Kind::decode && stage.name != "decode.0") break;  // all of one kind
    const Op& mapping = ops.at("compute_slot_mapping");
    const Op& norm = ops.at("fused_norm_rope");
    make_plan(mapping, part_case(mapping, value, stage.slices, blocks), budget, source + ": " + stage.name);
    make_plan(norm, norm_case(norm, value, stage, blocks), budget, source + ": " + stage.name);
    if (stage.kind != Stage::Kind::prefill) continue;
    Case attention = part_case(ops.at("dense_prefill"), value, stage.slices, blocks);
    make_plan(ops.at("dense_prefill"), attention, budget, source + ": " + stage.name);
  }
}

CaseResult run_generate(const Prepared& prepared, const Parts& parts, Backend& backend, const RunOptions& options,
                        ReferenceMemory& memory) {
  return Generation(prepared, parts, backend, options, memory).run(prepared.inputs_digest);
}

}  // namespace dcpcheck
