// The options that several verbs share: how help shows them, and what their values mean.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/commands/context.hpp"
#include "harness/commands/verb.hpp"
#include "harness/core/json.hpp"
#include "harness/report/output.hpp"

namespace dcpcheck {

OptionSpec backend_option();
OptionSpec json_option();
OptionSpec threads_option();
OptionSpec seed_option();
OptionSpec kernel_option(const std::string& fallback);
OptionSpec memory_option();
OptionSpec self_test_option();
OptionSpec ops_option();
OptionSpec set_option();
OptionSpec devices_option();
OptionSpec transport_option();
OptionSpec distributed_option();

// "16 hex digits", "0x…" or a decimal number. Throws InputError.
std::uint64_t parse_seed(std::string_view text);
std::string seed_text(std::uint64_t seed);  // 16 hex digits

// How many cases `option` asks for, 1 to 10^9. Throws InputError.
std::uint64_t parse_cases(const std::string& option, std::string_view text);

// How many threads or processes `option` asks for, 1 to 1024. Throws InputError.
int parse_count(const std::string& option, std::string_view text);

// What --memory says, or its default.
std::int64_t memory_of(const std::string& text);

// "4GiB", "512MiB", "100000" bytes. Throws InputError.
std::int64_t parse_size(std::string_view text);

// "auto", or device numbers with commas between them, as 0,1. Throws InputError.
Spread parse_devices(const std::string& text);

// What the shared options say.
struct RunSettings {
  std::unique_ptr<Backend> backend;
  std::string devices_text, transport_text;  // as given; empty: the default
  int threads = 1;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> kernels;  // --kernel, as given
  std::int64_t memory = 0;           // bytes
  std::string memory_text;           // as given; empty: the default
  bool self_test = true;             // refuse to run where the backend does not compute the right bits
};

// Throws InputError where a value is none, or the backend is not to be had here.
RunSettings run_settings(const Arguments& arguments, const std::atomic<int>* interrupted = nullptr);

// Where --json points, and with it where the text for a person goes: to stderr once stdout holds the document.
class JsonTarget {
 public:
  JsonTarget(const Arguments& arguments, Context& context);

  bool wanted() const { return stdout_ || file_.has_value(); }
  std::ostream& console() const { return *console_; }
  bool colour() const { return colour_; }
  // Writes the document, indented, where it was asked for. Throws HarnessError where that does not succeed.
  void write(const json::Value& document) const;
  // The document, then `text` for a person, which is shown even where the document could not be written.
  void deliver(const json::Value& document, const std::string& text) const;

 private:
  std::optional<ReportFile> file_;
  bool stdout_ = false;
  std::ostream* out_ = nullptr;
  std::ostream* console_ = nullptr;
  bool colour_ = false;
};

// Throws HarnessError where what was written to `stream` (called `name`) did not arrive.
void flush_or_throw(std::ostream& stream, const std::string& name);

}  // namespace dcpcheck
