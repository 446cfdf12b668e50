#include "harness/adapters/process.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "harness/adapters/child.hpp"
#include "harness/adapters/exchange.hpp"
#include "harness/adapters/ready_line.hpp"
#include "harness/core/error.hpp"
#include "harness/core/json.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kTextShown = 200;      // bytes of a line of its that is shown
constexpr std::size_t kReasonShown = 1000;   // … of a reason, or of stderr
constexpr std::size_t kAnswerMost = 65'536;  // bytes of an answer
constexpr int kAnswerDepth = 4;
constexpr std::int64_t kLeastDeviceMemory = std::int64_t{16} << 20;  // so that small launches do not each ask for more

// A process's words as they can be shown on one line.
std::string shown(std::string text, std::size_t most) {
  const bool cut = text.size() > most;
  text.resize(std::min(text.size(), most));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text + (cut ? "..." : "");
}

std::string in_seconds(milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  if (time.count() % 1000 != 0) text += "." + std::to_string(1000 + time.count() % 1000).substr(1);
  return text + " s";
}

// A process, and the memory that it shares.
struct Worker {
  explicit Worker(const std::string& command) : child(command, shared.descriptor()) {}

  SharedMemory shared;
  std::unique_ptr<DeviceMemory> device;
  std::unique_ptr<DeviceMemory> device_before;  // until the process has unmapped it, at its next answer
  Child child;
  std::int64_t launches = 0;  // so many were asked for
};

std::string with_last_words(const std::string& sentence, Child& child) {
  const std::string words = child.last_words();
  return words.empty() ? sentence : sentence + "; its stderr ends: " + shown(words, kReasonShown);
}

// What came of a line before something went wrong.
std::string after_a_part(const std::string& part) {
  return part.empty() ? "" : ", after a part of a line: " + shown(part, kTextShown);
}

// Why no line was heard. Of a child that has gone, or is killed when its worker goes.
LaunchError what_went_wrong(const Child::Heard& heard, Child& child, const std::string& awaited, milliseconds limit) {
  switch (heard.end) {
    case Child::End::closed: {
      const std::string ended = child.how_it_ended();
      if (!ended.empty())
        return {LaunchError::Kind::process_ended,
                with_last_words("its process ended before " + awaited + ": " + ended + after_a_part(heard.text), child)};
      return {LaunchError::Kind::bad_answer,
              with_last_words("its process closed its stdout before " + awaited + after_a_part(heard.text), child)};
    }
    case Child::End::late:
      return {LaunchError::Kind::timed_out,
              with_last_words(
                  "its process did not come to " + awaited + " within " + in_seconds(limit) + after_a_part(heard.text), child)};
    case Child::End::too_long:
    case Child::End::line: break;
  }
  return {LaunchError::Kind::bad_answer,
          with_last_words("its process wrote a line of more than " + std::to_string(Child::kLongestLine) + " bytes where " +
                              awaited + " was due",
                          child)};
}

// The processes of one spec.
class Processes {
 public:
  Processes(const std::string& spec, Ops ops, ProcessOptions options)
      : spec_(spec), ops_(std::move(ops)), options_(options), command_(spec.substr(kProcess.size())) {
    std::unique_ptr<Worker> first = start();
    give(std::move(first));
  }

  const ReadyLine& ready() const { return ready_; }
  const ProcessOptions& options() const { return options_; }

  // One that waits for a launch; where none does, it is started. Or why it cannot be.
  std::unique_ptr<Worker> take(LaunchError& error) {
    {
      const std::scoped_lock lock(guard_);
      if (!idle_.empty()) {
        std::unique_ptr<Worker> worker = std::move(idle_.back());
        idle_.pop_back();
        return worker;
      }
      // What does not start once is not waited for in every case to come.
      error = does_not_start_;
      if (!error.empty()) return nullptr;
    }
    try {
      return start();
    } catch (const InputError& failed) {
      const std::scoped_lock lock(guard_);
      does_not_start_ = {LaunchError::Kind::process_ended,
                         "a further process of it does not start: " + std::string(failed.what())};
      error = does_not_start_;
      return nullptr;
    }
  }

  void give(std::unique_ptr<Worker> worker) {
    const std::scoped_lock lock(guard_);
    idle_.push_back(std::move(worker));
  }

 private:
  std::unique_ptr<Worker> start() {
    auto worker = std::make_unique<Worker>(command_);
    Child& child = worker->child;
    const Child::Heard heard = child.hear(Child::Clock::now() + options_.start, options_.interrupted);
    if (heard.end != Child::End::line) {
      const LaunchError error = what_went_wrong(heard, child, "its ready line", options_.start);
      child.kill();
      throw InputError(spec_ + ": " + error.why);
    }
    ReadyLine ready;
    std::string wrong;
    try {
      ready = read_ready_line(heard.text, ops_, spec_);
      if (!ready_line_.empty() && heard.text != ready_line_) wrong = spec_ + ": it declares something else than before";
    } catch (const InputError& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) {
      child.kill();
      throw InputError(with_last_words(shown(wrong, 2 * kReasonShown), child));
    }
    if (ready_line_.empty()) {
      ready_ = std::move(ready);
      ready_line_ = heard.text;
    }
    return worker;
  }

  const std::string spec_;
  const Ops ops_;
  const ProcessOptions options_;
  const std::string command_;
  ReadyLine ready_;  // of the first one: written before any thread has this object
  std::string ready_line_;
  std::mutex guard_;
  std::vector<std::unique_ptr<Worker>> idle_;
  LaunchError does_not_start_;
};

std::string_view name_of(Role role) {
  switch (role) {
    case Role::in: return "in";
    case Role::out: return "out";
    case Role::cache: return "cache";
  }
  return "?";
}

json::Array numbers(const std::vector<std::int64_t>& values) { return json::Array(values.begin(), values.end()); }

json::Array tensors_of(const Launch& launch, const ExchangeLayout& layout) {
  json::Array tensors;
  for (const TensorPlan& tensor : launch.plan.tensors) {
    const View& view = launch.tensors.find(tensor.name)->second;
    tensors.emplace_back(json::Object{{"name", tensor.name},
                                      {"role", name_of(tensor.role)},
                                      {"dtype", name_of(view.dtype)},
                                      {"shape", numbers(view.shape)},
                                      {"strides", numbers(view.strides)},
                                      {"offset", layout.offsets.at(tensor.name)}});
  }
  return tensors;
}

json::Object scalars_in(const Plan& plan) {
  json::Object scalars;
  for (const auto& [name, term] : plan.environment) {
    const auto* integer = std::get_if<std::int64_t>(&term);
    scalars.emplace_back(name, integer != nullptr ? json::Value(*integer) : json::Value(std::get<std::string>(term)));
  }
  for (const auto& [name, value] : plan.value.params) {
    const auto* number = std::get_if<float>(&value);
    if (number != nullptr) scalars.emplace_back(name, static_cast<double>(*number));
  }
  return scalars;
}

// An answer that is one.
struct Answer {
  enum class Kind { ok, skip, refused, unmapped } kind = Kind::ok;
  std::string why;
};

// Throws InputError where the line is no answer to the launch.
Answer read_answer(const std::string& line, std::int64_t launch, bool mapped) {
  const std::string place = "its answer";
  const json::Value value = json::parse(line, place, {kAnswerMost, kAnswerDepth});
  const Reader reader(value, place);
  reader.object({"launch", "ok", "skip", "refused", "unmapped"});
  const std::int64_t number = reader.at("launch").count();
  if (number != launch)
    throw InputError("it is to launch " + std::to_string(number) + ", and launch " + std::to_string(launch) + " was asked for");
  if (value.get<json::Object>()->size() != 2)
    throw InputError(place + " has not one of ok, skip and refused beside the launch");
  if (const auto ok = reader.find("ok")) {
    if (!ok->boolean()) ok->fail("a launch that is not ok is skipped or refused");
    return {};
  }
  const auto why = [](const Reader& text) {
    std::string reason = shown(text.string(), kReasonShown);
    return reason.empty() ? std::string("it gave no reason") : reason;
  };
  if (const auto skip = reader.find("skip")) return {Answer::Kind::skip, why(*skip)};
  if (const auto refused = reader.find("refused")) return {Answer::Kind::refused, why(*refused)};
  const Reader unmapped = reader.at("unmapped");
  if (!mapped) unmapped.fail("the launch's memory is the shared one");
  return {Answer::Kind::unmapped, why(unmapped)};
}

// One launch on one worker, which is good for a further one where error is none, or a skip or a refusal.
struct Launched {
  LaunchError error;
  bool good = false;      // the worker
  bool unmapped = false;  // nothing was launched: the device memory could not be mapped
};

class WorkerLaunch {
 public:
  WorkerLaunch(Worker& worker, const Launch& launch, bool cuda, const ProcessOptions& options)
      : worker_(worker), launch_(launch), options_(options), mover_{cuda, launch.stream}, layout_(exchange_layout(launch)) {}

  // `by_handle`: in device memory that the process maps; else in shared memory, which is filled and fetched from here.
  Launched run(bool by_handle) {
    Child& child = worker_.child;
    if (const std::string& said = child.unheard(); !said.empty())
      return {bad("its process wrote a line that nothing asked for: " + shown(said.substr(0, said.find('\n')), kTextShown))};
    std::byte* const base = memory(by_handle);
    // Another one for each launch, so that what is read past an input is not the same in both runs of it.
    const auto guard = static_cast<std::byte>(worker_.launches % 2 == 0 ? 0xFF : 0x7F);
    bring(layout_, base, by_handle, guard, mover_);
    const std::int64_t number = worker_.launches++;
    const Child::Heard heard =
        child.ask(request(number, by_handle), Child::Clock::now() + options_.launch, options_.interrupted);
    if (heard.end != Child::End::line) return {what_went_wrong(heard, child, "an answer", options_.launch)};
    Answer answer;
    try {
      answer = read_answer(heard.text, number, by_handle);
    } catch (const InputError& error) {
      return {bad("its process wrote what is no answer: " + shown(heard.text, kTextShown) + " (" +
                  shown(error.what(), kTextShown) + ")")};
    }
    if (const std::string& said = child.unheard(); !said.empty())
      return {bad("its process went on after its answer: " + shown(said.substr(0, said.find('\n')), kTextShown))};
    switch (answer.kind) {
      case Answer::Kind::unmapped: return {{}, true, true};
      case Answer::Kind::skip: return {{LaunchError::Kind::skipped, answer.why}, true};
      case Answer::Kind::refused: return {{answer.why}, true};
      case Answer::Kind::ok: break;
    }
    const std::string stray = fetch(layout_, base, guard, mover_);
    return {{LaunchError::Kind::beside_inputs, stray}, true};
  }

 private:
  LaunchError bad(const std::string& sentence) {
    return {LaunchError::Kind::bad_answer, with_last_words(sentence, worker_.child)};
  }

  std::byte* memory(bool by_handle) {
    if (by_handle) return worker_.device->data();
    worker_.shared.reserve(layout_.bytes);
    return worker_.shared.data();
  }

  std::string request(std::int64_t number, bool by_handle) const {
    json::Object memory{{"kind", "shared"}, {"descriptor", Child::kMemory}, {"size", worker_.shared.bytes()}};
    if (by_handle)
      memory = {{"kind", "cuda_ipc"},
                {"device", worker_.device->device()},
                {"handle", worker_.device->handle()},
                {"size", worker_.device->bytes()}};
    memory.emplace_back("bytes", layout_.bytes);
    if (mover_.cuda && !by_handle) memory.emplace_back("device", current_device());
    return json::dump(json::Object{{"launch", number},
                                   {"device", mover_.cuda ? "cuda" : "host"},
                                   {"threads", launch_.threads},
                                   {"rank", launch_.rank},
                                   {"op", launch_.plan.op->name},
                                   {"memory", std::move(memory)},
                                   {"tensors", tensors_of(launch_, layout_)},
                                   {"scalars", scalars_in(launch_.plan)}});
  }

  Worker& worker_;
  const Launch& launch_;
  const ProcessOptions& options_;
  Mover mover_;
  ExchangeLayout layout_;
};

// Whether the worker has device memory of so many bytes that it can map.
bool has_device_memory(Worker& worker, std::int64_t bytes) {
  if (worker.device && worker.device->bytes() >= bytes) return true;
  const std::int64_t before = worker.device ? worker.device->bytes() : kLeastDeviceMemory;
  worker.device_before = std::move(worker.device);
  worker.device = DeviceMemory::make(std::max(bytes, before + before / 2));
  return worker.device != nullptr;
}

class ProcessKernel {
 public:
  ProcessKernel(std::shared_ptr<Processes> processes, bool ipc) : processes_(std::move(processes)), ipc_(ipc) {}

  LaunchError operator()(bool cuda, const Launch& launch) {
    for (const TensorPlan& tensor : launch.plan.tensors)
      if (tensor.cache.sparse)
        return {LaunchError::Kind::skipped, "a kernel in a process of its own is not given sparse caches"};
    if (cuda && launch.plan.value.graph)
      return {LaunchError::Kind::skipped, "what a kernel launches in a process of its own is not captured into a CUDA graph"};
    LaunchError error;
    std::unique_ptr<Worker> worker = processes_->take(error);
    if (!worker) return error;
    WorkerLaunch run(*worker, launch, cuda, processes_->options());
    const bool by_handle = cuda && ipc_ && has_device_memory(*worker, exchange_layout(launch).bytes);
    Launched launched = run.run(by_handle);
    if (launched.unmapped) {
      ipc_ = false;
      worker->device.reset();
      launched = run.run(false);
    }
    if (!launched.good) worker->child.kill();
    worker->device_before.reset();
    if (launched.good) processes_->give(std::move(worker));
    return launched.error;
  }

 private:
  std::shared_ptr<Processes> processes_;
  std::atomic<bool> ipc_;  // whether device memory is tried to be handed over
};

milliseconds seconds_in(const char* variable, milliseconds otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  double seconds = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, seconds);
  if (error != std::errc() || stop != end || !(seconds >= 0.001) || !(seconds <= 1e6))
    throw InputError(std::string(variable) + " is '" + shown(text, kTextShown) +
                     "', but it is a number of seconds from 0.001 to 1000000");
  return milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace

ProcessOptions process_options_from_environment() {
  ProcessOptions options;
  options.start = seconds_in("DCPCHECK_START_SECONDS", options.start);
  options.launch = seconds_in("DCPCHECK_LAUNCH_SECONDS", options.launch);
  return options;
}

Kernel load_process(const std::string& spec, const Ops& ops, const ProcessOptions& options) {
  if (spec.find_first_not_of(' ', kProcess.size()) == std::string::npos)
    throw InputError("--kernel " + spec + " names no command");
  const auto processes = std::make_shared<Processes>(spec, ops, options);
  const ReadyLine& ready = processes->ready();
  Kernel kernel;
  kernel.name = spec;
  kernel.op = ready.op;
  kernel.declared = ready.declared;
  kernel.doc = ready.declared.doc;
  const auto run = std::make_shared<ProcessKernel>(processes, ready.ipc);
  if (ready.host) kernel.host = [run](const Launch& launch) { return (*run)(false, launch); };
  if (ready.cuda) kernel.cuda = [run](const Launch& launch) { return (*run)(true, launch); };
  return kernel;
}

}  // namespace dcpcheck
