// A verb of the command line, as a value. Each lies in a file of its own under verbs/; the build makes the list.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dcpcheck {

struct Context;

struct OptionSpec {
  std::string name;      // "--backend"
  std::string value;     // how help calls its value: "auto|host|cuda"; empty: a flag
  std::string help;      // says the default
  bool repeats = false;  // may be given more than once
};

struct OperandSpec {
  std::string name;  // "CASE"; empty: the verb takes none
  std::string help;
  bool required = false;
  bool repeats = false;
};

// What stands on the command line after the verb's name is taken off.
struct Arguments {
  std::map<std::string, std::vector<std::string>, std::less<>> options;
  std::vector<std::string> operands;

  bool has(std::string_view option) const { return options.contains(option); }
  // The option's value, or `fallback` where it was not given.
  std::string text(std::string_view option, const std::string& fallback = {}) const {
    const auto found = options.find(option);
    return found == options.end() || found->second.empty() ? fallback : found->second.back();
  }
  std::vector<std::string> all(std::string_view option) const {
    const auto found = options.find(option);
    return found == options.end() ? std::vector<std::string>{} : found->second;
  }
};

struct Verb {
  std::string name;
  std::string summary;  // one line
  std::string details;  // a paragraph for its own help
  OperandSpec operand;
  std::vector<OptionSpec> options;
  // Returns the exit code. Throws InputError, HarnessError or Interrupted.
  std::function<int(const Arguments&, Context&)> run;
  bool hidden = false;  // not shown: the program calls it itself
};

// All verbs, in the order of their names.
std::vector<Verb> all_verbs();

}  // namespace dcpcheck
