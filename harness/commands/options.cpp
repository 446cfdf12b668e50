#include "harness/commands/options.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/commands/launcher.hpp"
#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr std::int64_t kDefaultMemory = std::int64_t{4} << 30;
constexpr int kMostThreads = 1024;
constexpr int kLastDevice = 1023;
constexpr std::size_t kMostSeats = 1024;

template <class Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc{} && stop == text.data() + text.size();
}

int parse_threads(const std::string& text) {
  if (text.empty()) return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return parse_count("--threads", text);
}

[[noreturn]] void throw_no_backend(const std::string& text) {
  const std::string near = text::nearest(text, {"auto", "host", "cuda"});
  throw InputError("--backend takes auto, host or cuda, not '" + text::printable(text) + "'" +
                   (near.empty() ? "" : ": did you mean " + near + "?"));
}

std::unique_ptr<Backend> parse_backend(const std::string& text, const Spread& spread) {
  if (text == "host") return make_host_backend(spread);
  if (text == "cuda") return make_cuda_backend(spread);
  if (text == "auto") return cuda_available() ? make_cuda_backend(spread) : make_host_backend(spread);
  throw_no_backend(text);
}

Spread::Transport parse_transport(const std::string& text) {
  if (text == "host") return Spread::Transport::host;
  if (text == "nccl") return Spread::Transport::nccl;
  const std::string near = text::nearest(text, {"host", "nccl"});
  throw InputError("--transport takes nccl or host, not '" + text::printable(text) + "'" +
                   (near.empty() ? "" : ": did you mean " + near + "?"));
}

}  // namespace

OptionSpec backend_option() {
  return {"--backend", "auto|host|cuda", "Where kernels run; auto (the default): the GPU where there is one, else the CPU",
          false};
}
OptionSpec json_option() {
  return {"--json", "FILE|-", "Also write the answer as JSON to FILE; - is stdout, and the text goes to stderr", false};
}
OptionSpec threads_option() {
  return {"--threads", "N", "Host threads; default: as many as the machine has. No result depends on it", false};
}
OptionSpec seed_option() {
  return {"--seed", "SEED", "Replaces the cases' seeds: 16 hex digits, 0x and hex digits, or a decimal number", false};
}
OptionSpec kernel_option(const std::string& fallback) {
  return {"--kernel", "SPEC",
          "builtin:OP[@FAULT], OP[@FAULT], @FAULT, lib:FILE, a shared library, cubin:FILE, a manifest of cubins, or "
          "exec:COMMAND, a process; OP= may stand before it; default: " +
              fallback,
          true};
}
OptionSpec memory_option() { return {"--memory", "SIZE", "What one case may take of memory, as 512MiB; default: 4GiB", false}; }

OptionSpec ops_option() { return {"--ops", "DIR", "Ops of your own: the .op.json files of a folder", true}; }

OptionSpec set_option() {
  return {
      "--set", "PATH=VALUE",
      "Replaces a field of the case, as dcp.world_size=4, batch.0.uncached=512 or params.mla_layout=bf16; null gives it its "
      "default",
      true};
}

OptionSpec devices_option() {
  return {"--devices", "auto|0,1,…",
          "Devices that ranks are spread over, rank r on the (r mod their number)th; auto: all there are; default: the first. "
          "On the host they are mere labels",
          false};
}
OptionSpec transport_option() {
  return {"--transport", "nccl|host",
          "How data gets from one device to another; default: NCCL where it is found and no device stands twice, else the host",
          false};
}

OptionSpec distributed_option() {
  return {"--distributed", "",
          "One process a rank, as a launcher on one host starts them: mpirun -n 4 dcpcheck repro --distributed", false};
}

OptionSpec self_test_option() {
  return {"--no-self-test", "", "Run although this build may not compute the bits that digests are compared by", false};
}

Spread parse_devices(const std::string& text) {
  Spread spread;
  if (text == "auto") {
    spread.all = true;
    return spread;
  }
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    int device = -1;
    if (!read_number(std::string_view(text).substr(at, end - at), device) || device < 0 || device > kLastDevice ||
        spread.devices.size() == kMostSeats)
      throw InputError("--devices takes auto, or up to " + std::to_string(kMostSeats) + " numbers from 0 to " +
                       std::to_string(kLastDevice) + " with commas between them, as 0,1, not '" + text::printable(text) + "'");
    spread.devices.push_back(device);
    at = end + 1;
  }
  return spread;
}

std::uint64_t parse_seed(std::string_view text) {
  std::uint64_t seed = 0;
  const bool prefixed = text.starts_with("0x") || text.starts_with("0X");
  const bool hex = prefixed || text.size() == 16;
  if (!read_number(prefixed ? text.substr(2) : text, seed, hex ? 16 : 10))
    throw InputError("a seed is 16 hex digits, 0x and hex digits, or a decimal number below 2^64, not '" +
                     text::printable(text) + "'");
  return seed;
}

std::string seed_text(std::uint64_t seed) { return hex_of(seed); }

int parse_count(const std::string& option, std::string_view text) {
  int number = 0;
  if (!read_number(text, number) || number < 1 || number > kMostThreads)
    throw InputError(option + " takes a number from 1 to " + std::to_string(kMostThreads) + ", not '" + text::printable(text) +
                     "'");
  return number;
}

std::uint64_t parse_cases(const std::string& option, std::string_view text) {
  std::uint64_t cases = 0;
  if (!read_number(text, cases) || cases == 0 || cases > 1'000'000'000)
    throw InputError(option + " " + text::printable(text) + " is no number of cases from 1 to 1000000000");
  return cases;
}

std::int64_t parse_size(std::string_view text) {
  constexpr std::pair<std::string_view, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"K", 10},
                                                         {"M", 20},   {"G", 30},   {"T", 40},   {"B", 0}};
  std::string_view digits = text;
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (!text.ends_with(unit)) continue;
    digits.remove_suffix(unit.size());
    shift = bits;
    break;
  }
  std::int64_t number = 0;
  if (!read_number(digits, number) || number < 1 || number > (std::numeric_limits<std::int64_t>::max() >> shift))
    throw InputError("--memory takes a size as 512MiB or 4GiB, not '" + text::printable(text) + "'");
  return number << shift;
}

std::int64_t memory_of(const std::string& text) { return text.empty() ? kDefaultMemory : parse_size(text); }

RunSettings run_settings(const Arguments& arguments, const std::atomic<int>* interrupted) {
  RunSettings settings;
  settings.threads = parse_threads(arguments.text("--threads"));
  if (arguments.has("--seed")) settings.seed = parse_seed(arguments.text("--seed"));
  settings.kernels = arguments.all("--kernel");
  settings.self_test = !arguments.has("--no-self-test");
  settings.memory_text = arguments.text("--memory");
  settings.memory = memory_of(settings.memory_text);
  settings.devices_text = arguments.text("--devices");
  settings.transport_text = arguments.text("--transport");
  Spread spread;
  if (arguments.has("--devices")) spread = parse_devices(settings.devices_text);
  if (arguments.has("--transport")) spread.transport = parse_transport(settings.transport_text);
  const std::string backend = arguments.text("--backend", "auto");
  if (!arguments.has("--distributed")) {
    settings.backend = parse_backend(backend, spread);
    return settings;
  }
  if (backend != "auto" && backend != "host" && backend != "cuda") throw_no_backend(backend);
  std::string why;
  const bool cuda = backend != "host" && cuda_available(&why);
  if (backend == "cuda" && !cuda) throw InputError("--backend cuda: " + why);
  settings.backend =
      distributed_backend(launched_by_environment(), arguments, cuda ? "cuda" : "host", spread.transport, interrupted);
  return settings;
}

JsonTarget::JsonTarget(const Arguments& arguments, Context& context)
    : out_(context.out), console_(context.out), colour_(context.colour_out) {
  if (!arguments.has("--json")) return;
  const std::string path = arguments.text("--json");
  if (path != "-") {
    file_.emplace(path);
    return;
  }
  stdout_ = true;
  console_ = context.err;
  colour_ = context.colour_err;
}

void JsonTarget::write(const json::Value& document) const {
  const std::string text = json::dump(document, 2) + "\n";
  if (file_) file_->write(text);
  if (stdout_) {
    *out_ << text;
    flush_or_throw(*out_, "stdout");
  }
}

void JsonTarget::deliver(const json::Value& document, const std::string& text) const {
  std::exception_ptr failure;
  try {
    write(document);  // first: a reader of the text who has seen enough may end us
  } catch (const HarnessError&) {
    failure = std::current_exception();
  }
  *console_ << text << std::flush;
  if (failure) std::rethrow_exception(failure);
}

void flush_or_throw(std::ostream& stream, const std::string& name) {
  errno = 0;
  stream.flush();
  if (stream) return;
  const int error = errno;
  throw HarnessError(name + ": what was written did not arrive" + (error == 0 ? "" : std::string(": ") + std::strerror(error)));
}

}  // namespace dcpcheck
