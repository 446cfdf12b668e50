#include "harness/exec/rank_service.hpp"

#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "harness/core/error.hpp"
#include "harness/exec/case_message.hpp"
#include "harness/exec/nccl_transport.hpp"

namespace dcpcheck {
namespace {

constexpr auto kForEver = Wire::Clock::time_point::max() - std::chrono::hours(1);

// A launch's inputs and where they are placed; the backend refers to all of it.
struct Placed {
  Plan plan;
  Inputs inputs;
  ArenaLayout arena;
  std::unique_ptr<Placement> placement;
};

class Rank {
 public:
  Rank(const RankService& service, Wire& wire) : service_(service), wire_(wire) {}

  void serve() {
    say(hello_of(service_.hello));
    while (true) {
      Bytes message;
      // Whoever judges may think for long; where it is gone, the wire ends.
      if (wire_.receive(message, kForEver, service_.interrupted) != Wire::Outcome::done) return;
      try {
        answer(message);
      } catch (const Interrupted&) {
        throw;
      } catch (const std::exception& error) {
        say(MessageWriter().number(static_cast<std::int64_t>(Reply::failed)).text(error.what()).message());
        throw;
      }
    }
  }

 private:
  void say(const Bytes& message) {
    const auto deadline = Wire::Clock::now() + rank_patience();
    if (wire_.send(message, deadline, service_.interrupted) == Wire::Outcome::late)
      throw HarnessError("what rank " + std::to_string(service_.hello.rank) + " answered is not read");
  }

  static MessageWriter done() { return MessageWriter().number(static_cast<std::int64_t>(Reply::done)); }

  void answer(const Bytes& message) {
    MessageReader asked(message);
    switch (static_cast<Ask>(asked.number())) {
      case Ask::place: return place(asked);
      case Ask::run: return run(asked);
      case Ask::drop: placed_.erase(asked.number()); return;
      case Ask::make_id: return make_id();
      case Ask::meet: return meet(asked);
      case Ask::exchange: return exchange(asked);
      case Ask::give_up: return;
    }
    throw HarnessError("a rank is asked what it does not know");
  }

  void place(MessageReader& asked) {
    const std::int64_t number = asked.number();
    auto placed = std::make_unique<Placed>();
    const std::string name = asked.text();
    const Case value = read_case(asked);
    const auto op = service_.ops->find(name);
    if (op == service_.ops->end()) throw HarnessError("rank " + std::to_string(service_.hello.rank) + " knows no op " + name);
    placed->plan = make_plan(op->second, value, std::numeric_limits<std::int64_t>::max(), name);
    const std::int64_t rank = asked.number();
    for (std::int64_t left = asked.number(); left > 0; --left) {
      std::string input = asked.text();
      placed->inputs.shared[std::move(input)] = asked.bytes();
    }
    placed->arena = arena_layout(placed->plan);
    placed->placement = service_.backend->place(placed->plan, placed->inputs, rank, placed->arena, 0);
    placed_[number] = std::move(placed);
  }

  void run(MessageReader& asked) {
    Placed& placed = *placed_.at(asked.number());
    const std::string name = asked.text(), op = asked.text();
    const auto threads = static_cast<int>(asked.number());
    const std::span<const std::byte> given = asked.view();
    if (static_cast<std::int64_t>(given.size()) != placed.arena.bytes)
      throw HarnessError("the arena of " + op + " is of another size on rank " + std::to_string(service_.hello.rank));
    if (placed.arena.bytes > room_) {
      image_ = service_.backend->image_memory(placed.arena.bytes);
      room_ = placed.arena.bytes;
    }
    const std::span<std::byte> image(image_.get(), given.size());
    if (!given.empty()) std::memcpy(image.data(), given.data(), given.size());
    const LaunchError error = placed.placement->run(service_.kernel(name, op), image, threads);
    MessageWriter answer = done();
    answer.number(static_cast<std::int64_t>(error.kind)).text(error.why).bytes(image);
    const std::vector<Touched> touched = placed.placement->touched();
    answer.number(static_cast<std::int64_t>(touched.size()));
    for (const Touched& one : touched) {
      answer.text(one.buffer).number(one.byte).number(one.bytes);
      answer.number(std::to_integer<std::int64_t>(one.value)).number(one.again);
    }
    const std::vector<ChangedInput> changed = placed.placement->changed_inputs();
    answer.number(static_cast<std::int64_t>(changed.size()));
    for (const ChangedInput& one : changed) answer.text(one.name).number(one.bytes).number(one.first);
    say(answer.message());
  }

#ifdef DCPCHECK_HAVE_CUDA
  const std::shared_ptr<const NcclLibrary>& nccl() {
    std::string why;
    if (nccl_ == nullptr) nccl_ = NcclLibrary::find(&why);
    if (nccl_ == nullptr) throw HarnessError(why);
    return nccl_;
  }

  void make_id() {
    NcclId id;
    nccl()->check(nccl()->get_unique_id(&id), "ncclGetUniqueId");
    say(done().bytes(std::as_bytes(std::span(id.bytes))).message());
  }

  // Calls f(deadline, hopeless), which waits for other ranks: not once something comes from whoever judges.
  template <class F>
  void with_others(F f) {
    try {
      f(NcclEnd::Clock::now() + rank_patience(), [this] { return wire_.stirs(); });
    } catch (const RankLost& lost) {
      end_.reset();
      say(MessageWriter().number(static_cast<std::int64_t>(Reply::abandoned)).text(lost.what()).message());
    }
  }

  void meet(MessageReader& asked) {
    NcclId id;
    const std::span<const std::byte> bytes = asked.view();
    if (bytes.size() != id.bytes.size()) throw HarnessError("an id of NCCL is of another size");
    std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
    const std::int64_t seat = asked.number(), seats = asked.number();
    if (end_ != nullptr) end_->give_up();
    end_.reset();
    with_others([&](auto deadline, const NcclEnd::Hopeless& hopeless) {
      end_ = std::make_unique<NcclEnd>(nccl(), service_.device, id, seat, seats, deadline, hopeless);
      say(done().message());
    });
  }

  void exchange(MessageReader& asked) {
    std::vector<NcclEnd::Outgoing> outgoing;
    std::vector<NcclEnd::Incoming> incoming;
    for (std::int64_t left = asked.number(); left > 0; --left) {
      const std::int64_t to = asked.number();
      outgoing.push_back({to, asked.bytes()});
    }
    for (std::int64_t left = asked.number(); left > 0; --left) {
      const std::int64_t from = asked.number();
      incoming.push_back({from, asked.number()});
    }
    if (end_ == nullptr) throw HarnessError("a rank is to send before it has met others");
    with_others([&](auto deadline, const NcclEnd::Hopeless& hopeless) {
      MessageWriter answer = done();
      for (const Bytes& bytes : end_->exchange(outgoing, incoming, deadline, hopeless)) answer.bytes(bytes);
      say(answer.message());
    });
  }
#else
  static void make_id() { throw HarnessError("this build has no CUDA backend, and so no NCCL"); }
  static void meet(MessageReader&) { make_id(); }
  static void exchange(MessageReader&) { make_id(); }
#endif

  const RankService& service_;
  Wire& wire_;
  std::shared_ptr<std::byte> image_;  // of the backend's image memory; grows
  std::int64_t room_ = 0;
#ifdef DCPCHECK_HAVE_CUDA
  std::shared_ptr<const NcclLibrary> nccl_;
  std::unique_ptr<NcclEnd> end_;
#endif
  std::map<std::int64_t, std::unique_ptr<Placed>> placed_;
};

}  // namespace

Bytes hello_of(const RankHello& hello) {
  return MessageWriter().number(hello.rank).text(hello.device).text(hello.nccl).message();
}

RankHello read_hello(const Bytes& message) {
  MessageReader said(message);
  RankHello hello;
  hello.rank = said.number();
  hello.device = said.text();
  hello.nccl = said.text();
  return hello;
}

void serve_rank(const RankService& service, Wire& wire) { Rank(service, wire).serve(); }

}  // namespace dcpcheck
