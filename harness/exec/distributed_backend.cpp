#include "harness/exec/distributed_backend.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "harness/core/error.hpp"
#include "harness/exec/case_message.hpp"
#include "harness/exec/nccl_library.hpp"
#include "harness/exec/rank_service.hpp"
#include "harness/exec/wire.hpp"

namespace dcpcheck {
namespace {

MessageWriter asking(Ask what) { return MessageWriter().number(static_cast<std::int64_t>(what)); }

std::string seconds(std::chrono::milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  if (time.count() % 1000 != 0) text += "." + std::to_string(1000 + time.count() % 1000).substr(1);
  return text + " s";
}

// One rank's process, as far as there is one.
class RankProcess {
 public:
  void comes(std::unique_ptr<Wire> wire, RankHello hello) {
    pid_ = wire->peer();
    const std::scoped_lock lock(holding_);
    wire_ = std::move(wire);
    hello_ = std::move(hello);
    ++comings_;
  }
  bool there() const { return wire_ != nullptr; }
  // How often one came: what was placed in an earlier process is gone with it.
  std::int64_t comings() const { return comings_; }
  const RankHello& hello() const { return hello_; }
  std::mutex& guard() { return guard_; }  // to be held while it is asked something

  // Throws RankLost where it is gone, or late.
  void say(const Bytes& message, Wire::Clock::time_point deadline, const std::atomic<int>* interrupted) {
    check(wire_->send(message, deadline, interrupted));
  }
  Bytes hear(Wire::Clock::time_point deadline, const std::atomic<int>* interrupted) {
    Bytes message;
    check(wire_->receive(message, deadline, interrupted));
    return message;
  }
  // Says something while another thread waits for its answer; whether that has gone out.
  bool tell(const Bytes& message) {
    std::shared_ptr<Wire> wire;
    {
      const std::scoped_lock lock(holding_);
      wire = wire_;
    }
    return wire != nullptr && wire->send(message, Wire::Clock::now() + std::chrono::seconds(5)) == Wire::Outcome::done;
  }
  // Nothing more is asked of it, and it ends; another one may come.
  void leave() {
    const std::scoped_lock lock(holding_);
    wire_.reset();
  }
  std::string name() const { return "the process of rank " + std::to_string(hello_.rank) + " (" + std::to_string(pid_) + ")"; }

 private:
  void check(Wire::Outcome outcome) {
    if (outcome == Wire::Outcome::done) return;
    leave();
    if (outcome == Wire::Outcome::closed) throw RankLost(Status::crash, name() + " has ended");
    // Late, and perhaps for ever: another process takes its place. It may have ended by itself meanwhile.
    if (::kill(static_cast<pid_t>(pid_), SIGKILL) != 0 && errno != ESRCH) throw_errno("kill of " + name());
    throw RankLost(Status::hang, name() + " did not answer within " + seconds(rank_patience()) + ", and was killed");
  }

  std::mutex holding_;  // of wire_, which tell() may need while leave() lets it go
  std::shared_ptr<Wire> wire_;
  RankHello hello_;
  std::int64_t pid_ = 0, comings_ = 0;
  std::mutex guard_;
};

class Ranks {
 public:
  explicit Ranks(const Distribution& distribution)
      : interrupted_(distribution.interrupted),
        given_up_(distribution.given_up),
        meeting_(distribution.meeting),
        ranks_(static_cast<std::size_t>(distribution.ranks)),
        waiting_(ranks_.size()) {
    const auto deadline = Wire::Clock::now() + rank_patience();
    for (std::int64_t rank = 0; rank < count(); ++rank) await(rank, deadline);
  }

  std::int64_t count() const { return static_cast<std::int64_t>(ranks_.size()); }
  RankProcess& at(std::int64_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const std::atomic<int>* interrupted() const { return interrupted_; }

  // Waits for a process of the rank's, whose guard is held, where there is none.
  void await(std::int64_t rank, Wire::Clock::time_point deadline) {
    RankProcess& process = at(rank);
    while (!process.there()) {
      const std::scoped_lock lock(meeting_guard_);
      auto& waiting = waiting_[static_cast<std::size_t>(rank)];
      if (waiting.first != nullptr) {
        process.comes(std::exchange(waiting.first, nullptr), waiting.second);
        return;
      }
      std::unique_ptr<Wire> wire = meeting_.next(std::min(deadline, Wire::Clock::now() + kSlice), interrupted_);
      if (wire == nullptr && given_up_ != nullptr && given_up_->load())
        throw HarnessError("a rank's process has ended for good, as it has said itself");
      if (wire == nullptr && Wire::Clock::now() < deadline) continue;
      if (wire == nullptr)
        throw HarnessError("no process of rank " + std::to_string(rank) + " came within " + seconds(rank_patience()));
      Bytes message;
      // One that ended at once has no hello; another may come.
      if (wire->receive(message, deadline, interrupted_) != Wire::Outcome::done) continue;
      RankHello hello = read_hello(message);
      if (hello.rank < 0 || hello.rank >= count())
        throw HarnessError("a process came as rank " + std::to_string(hello.rank) + ", and there are " +
                           std::to_string(count()));
      const auto index = static_cast<std::size_t>(hello.rank);
      waiting_[index] = {std::move(wire), std::move(hello)};
    }
  }

  // The answer to `message`, whose deadline begins now. Throws RankLost where there is none, or it says that the rank failed.
  // The rank's guard is held.
  Bytes ask(std::int64_t rank, const Bytes& message) {
    RankProcess& process = at(rank);
    const auto deadline = Wire::Clock::now() + rank_patience() + kMargin;
    process.say(message, deadline, interrupted_);
    return process.hear(deadline, interrupted_);
  }

  // `answer` behind what it begins with. Throws RankLost where it is another one than `done`.
  MessageReader read(std::int64_t rank, const Bytes& answer) {
    MessageReader reader(answer);
    const auto kind = static_cast<Reply>(reader.number());
    if (kind == Reply::done) return reader;
    RankProcess& process = at(rank);
    const std::string why = process.name() + ": " + reader.text();
    if (kind == Reply::failed) process.leave();
    throw RankLost(kind == Reply::failed ? Status::crash : Status::hang, why);
  }

  // Longer than a rank itself waits for others, so that it can say so.
  static constexpr std::chrono::seconds kMargin{2};

 private:
  static constexpr std::chrono::milliseconds kSlice{200};  // between looks at whether one will not come
  const std::atomic<int>* interrupted_;
  const std::atomic<bool>* given_up_;
  Meeting meeting_;
  std::mutex meeting_guard_;
  std::vector<RankProcess> ranks_;
  std::vector<std::pair<std::unique_ptr<Wire>, RankHello>> waiting_;  // came, and were not yet needed
};

class DistributedPlacement : public Placement {
 public:
  DistributedPlacement(Ranks& ranks, std::int64_t number, std::int64_t process, const Plan& plan, const Inputs& inputs,
                       std::int64_t rank, const ArenaLayout& arena)
      : ranks_(ranks), number_(number), process_(process), plan_(plan), inputs_(inputs), rank_(rank), arena_(arena) {}

  ~DistributedPlacement() override {
    RankProcess& process = ranks_.at(process_);
    const std::scoped_lock lock(process.guard());
    if (!process.there() || process.comings() != placed_in_) return;
    try {
      process.say(asking(Ask::drop).number(number_).message(), Wire::Clock::now() + rank_patience(), nullptr);
    } catch (const std::exception&) {
      process.leave();  // the next one who needs it will see
    }
  }
  DistributedPlacement(const DistributedPlacement&) = delete;
  DistributedPlacement& operator=(const DistributedPlacement&) = delete;

  LaunchError run(const Kernel& kernel, std::span<std::byte> image, int threads) override {
    RankProcess& process = ranks_.at(process_);
    const std::scoped_lock lock(process.guard());
    ranks_.await(process_, Wire::Clock::now() + rank_patience());
    touched_.clear();
    changed_.clear();
    try {
      if (process.comings() != placed_in_) place(process);
      const MessageWriter asked =
          asking(Ask::run).number(number_).text(kernel.name).text(kernel.op).number(threads).bytes(image);
      const Bytes answer = ranks_.ask(process_, asked.message());
      return take(ranks_.read(process_, answer), image);
    } catch (const RankLost& lost) {
      return {lost.status == Status::hang ? LaunchError::Kind::timed_out : LaunchError::Kind::process_ended, lost.what()};
    }
  }

  std::vector<Touched> touched() const override { return touched_; }
  std::vector<ChangedInput> changed_inputs() override { return changed_; }

 private:
  void place(RankProcess& process) {
    MessageWriter asked = asking(Ask::place).number(number_).text(plan_.op->name);
    write_case(asked, plan_.value);
    asked.number(rank_);
    std::vector<const TensorPlan*> given;
    for (const TensorPlan& tensor : plan_.tensors)
      if (tensor.role == Role::in && !arena_.has(tensor.name)) given.push_back(&tensor);
    asked.number(static_cast<std::int64_t>(given.size()));
    for (const TensorPlan* tensor : given) asked.text(tensor->name).bytes(inputs_.get(tensor->name, rank_));
    process.say(asked.message(), Wire::Clock::now() + rank_patience(), ranks_.interrupted());
    placed_in_ = process.comings();
  }

  LaunchError take(MessageReader answer, std::span<std::byte> image) {
    LaunchError error;
    error.kind = static_cast<LaunchError::Kind>(answer.number());
    error.why = answer.text();
    const std::span<const std::byte> after = answer.view();
    if (after.size() != image.size()) throw HarnessError("an arena came back from a rank in another size");
    if (!after.empty()) std::memcpy(image.data(), after.data(), after.size());
    for (std::int64_t left = answer.number(); left > 0; --left) {
      Touched one;
      one.buffer = answer.text();
      one.byte = answer.number();
      one.bytes = answer.number();
      one.value = static_cast<std::byte>(answer.number());
      one.again = answer.number();
      touched_.push_back(std::move(one));
    }
    for (std::int64_t left = answer.number(); left > 0; --left) {
      ChangedInput one;
      one.name = answer.text();
      one.bytes = answer.number();
      one.first = answer.number();
      changed_.push_back(std::move(one));
    }
    return error;
  }

  Ranks& ranks_;
  std::int64_t number_, process_;
  const Plan& plan_;
  const Inputs& inputs_;
  std::int64_t rank_;
  const ArenaLayout& arena_;
  std::int64_t placed_in_ = 0;  // RankProcess::comings
  std::vector<Touched> touched_;
  std::vector<ChangedInput> changed_;
};

class DistributedBackend : public Backend {
 public:
  explicit DistributedBackend(const Distribution& distribution) : name_(distribution.backend), ranks_(distribution) {
    const std::string why = why_no_nccl();
    if (distribution.transport == Spread::Transport::nccl && !why.empty()) throw InputError("--transport nccl: " + why);
    nccl_ = distribution.transport != Spread::Transport::host && why.empty() && ranks_.count() > 1;
  }

  std::string name() const override { return name_; }
  std::string description() const override {
    const std::string device = devices().front();
    return device.substr(std::min(device.size(), device.find(": ") + 2));
  }
  bool can_run(const Kernel& kernel) const override { return static_cast<bool>(name_ == "cuda" ? kernel.cuda : kernel.host); }
  std::shared_ptr<std::byte> image_memory(std::int64_t bytes) override {
    auto memory = std::make_shared<HostMemory>(bytes);
    return {memory, memory->data()};
  }
  std::unique_ptr<Placement> place(const Plan& plan, const Inputs& inputs, std::int64_t rank, const ArenaLayout& arena,
                                   std::int64_t seat) override {
    return std::make_unique<DistributedPlacement>(ranks_, ++placements_, seat % ranks_.count(), plan, inputs, rank, arena);
  }
  std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (std::int64_t rank = 0; rank < ranks_.count(); ++rank) names.push_back(ranks_.at(rank).hello().device);
    return names;
  }
  std::string transport() const override {
    if (nccl_) return "nccl " + ranks_.at(0).hello().nccl;
    return ranks_.count() > 1 ? "host" : "none";
  }
  // Through the host, what a rank's process left is here by now, and goes to the other's process with its inputs.
  std::vector<Bytes> carry(std::span<const Parcel> parcels) override {
    return nccl_ ? carry_by_nccl(parcels) : carry_through_host(parcels);
  }

 private:
  std::string why_no_nccl() const {
    if (name_ != "cuda") return "NCCL moves data between GPUs, and the backend is " + name_;
    std::set<std::string> devices;
    for (std::int64_t rank = 0; rank < ranks_.count(); ++rank) {
      const RankHello& hello = ranks_.at(rank).hello();
      if (hello.nccl.empty()) return "rank " + std::to_string(rank) + " does not find libnccl.so.2";
      if (!devices.insert(hello.device).second) return "NCCL takes a device once, and two ranks have device " + hello.device;
    }
    return "";
  }

  // Calls f(rank) for the ranks that `wanted` says, all at once, each under its guard. Where one fails the others, who may wait
  // for it, are told to give up. Once all have come to an end, what befell a rank that is gone is thrown, else the first
  // failure.
  template <class F>
  void all_at_once(const std::set<std::int64_t>& wanted, F f) {
    std::exception_ptr worst;
    bool gone = false;
    std::mutex guard;
    std::set<std::int64_t> busy = wanted;
    {
      std::vector<std::jthread> team;
      for (const std::int64_t rank : wanted) {
        team.emplace_back([&, rank] {
          std::exception_ptr failed;
          try {
            f(rank);
          } catch (...) {
            failed = std::current_exception();
          }
          const std::scoped_lock lock(guard);
          busy.erase(rank);
          if (failed == nullptr) return;
          const bool told = worst != nullptr, is_gone = !ranks_.at(rank).there();
          if (!told || (is_gone && !gone)) worst = failed;
          gone = gone || is_gone;
          if (told) return;
          for (const std::int64_t other : busy) {
            // Not checked: one that is gone needs not be told.
            static_cast<void>(ranks_.at(other).tell(asking(Ask::give_up).message()));
          }
        });
      }
    }
    if (worst == nullptr) return;
    met_.clear();
    std::rethrow_exception(worst);
  }

  std::vector<std::int64_t> comings() const {
    std::vector<std::int64_t> all;
    for (std::int64_t rank = 0; rank < ranks_.count(); ++rank)
      all.push_back(ranks_.at(rank).there() ? ranks_.at(rank).comings() : 0);
    return all;
  }

  void meet() {
    const std::int64_t count = ranks_.count();
    std::set<std::int64_t> all;
    for (std::int64_t rank = 0; rank < count; ++rank) {
      all.insert(rank);
      ranks_.await(rank, Wire::Clock::now() + rank_patience());
    }
    const Bytes answer = ranks_.ask(0, asking(Ask::make_id).message());
    const Bytes id = ranks_.read(0, answer).bytes();
    all_at_once(all, [&](std::int64_t rank) {
      const Bytes met = ranks_.ask(rank, asking(Ask::meet).bytes(id).number(rank).number(count).message());
      static_cast<void>(ranks_.read(rank, met));
    });
    met_ = comings();
  }

  std::vector<Bytes> carry_by_nccl(std::span<const Parcel> parcels) {
    std::vector<Bytes> arrived = carry_through_host(parcels);  // what goes to another rank is replaced by what comes there
    const std::vector<Route> routes = routes_of(parcels, ranks_.count());
    if (routes.empty()) return arrived;
    std::set<std::int64_t> wanted;
    for (const Route& route : routes) {
      for (const std::size_t i : route.parcels) arrived[i].clear();
      wanted.insert(route.from);
      wanted.insert(route.to);
    }
    if (met_.empty() || met_ != comings()) meet();
    std::vector<std::vector<Bytes>> messages(static_cast<std::size_t>(ranks_.count()));
    all_at_once(wanted, [&](std::int64_t rank) {
      MessageWriter out, in;
      std::int64_t outgoing = 0, incoming = 0;
      for (const Route& route : routes) {
        if (route.from == rank && ++outgoing > 0) out.number(route.to).bytes(message_on(route, parcels));
        if (route.to == rank && ++incoming > 0) in.number(route.from).number(route.bytes);
      }
      Bytes asked = asking(Ask::exchange).number(outgoing).message();
      asked.insert(asked.end(), out.message().begin(), out.message().end());
      const Bytes count = MessageWriter().number(incoming).message();
      asked.insert(asked.end(), count.begin(), count.end());
      asked.insert(asked.end(), in.message().begin(), in.message().end());
      const Bytes answer = ranks_.ask(rank, asked);
      MessageReader came = ranks_.read(rank, answer);
      for (; incoming > 0; --incoming) messages[static_cast<std::size_t>(rank)].push_back(came.bytes());
    });
    std::vector<std::size_t> taken(messages.size());
    for (const Route& route : routes) {
      const auto to = static_cast<std::size_t>(route.to);
      deliver(route, parcels, messages[to][taken[to]++], arrived);
    }
    return arrived;
  }

  std::string name_;
  mutable Ranks ranks_;
  bool nccl_ = false;
  std::vector<std::int64_t> met_;  // each rank's comings when they met; empty: they have not
  std::atomic<std::int64_t> placements_{0};
};

}  // namespace

std::unique_ptr<Backend> make_distributed_backend(const Distribution& distribution) {
  return std::make_unique<DistributedBackend>(distribution);
}

}  // namespace dcpcheck
