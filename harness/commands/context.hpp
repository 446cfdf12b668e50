// All that a verb works with, put together in main.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/op.hpp"
#include "harness/exec/backend.hpp"
#include "harness/exec/kernel.hpp"
#include "harness/oracle/admissible.hpp"
#include "harness/report/report.hpp"

namespace dcpcheck {

// A file that the build put into the program: a case, or a template.
struct EmbeddedFile {
  std::string name;  // "512-dcp4"
  std::string text;
};

struct Context {
  ToolInfo tool;
  std::vector<std::string> command;  // the words of the command line
  std::string program = "dcpcheck";  // how the program was called: what replay lines begin with
  Ops ops;
  std::map<std::string, Reference, std::less<>> references;  // by op
  std::vector<std::string> op_folders;                       // --ops, as given
  std::vector<Kernel> kernels;
  // The kernel from elsewhere that a spec ("lib:<file.so>", "exec:<command>") names; nullopt where the spec is of no such
  // kind. Throws InputError.
  std::function<std::optional<Kernel>(const std::string& spec, const Ops& ops)> load_kernel;
  // The reference that the user's op names by such a spec, whose file or command is sought from `folder`; likewise.
  std::function<std::optional<Reference>(const Op& op, const std::filesystem::path& folder, const Ops& ops)> load_reference;
  std::vector<EmbeddedFile> corpus;                // the scenarios of `repro`
  std::function<std::string(Backend&)> self_test;  // "" or what differs
  const std::atomic<int>* interrupted = nullptr;   // a signal's number once one came
  std::ostream* out = nullptr;                     // results
  std::ostream* err = nullptr;                     // messages
  bool colour_out = false, colour_err = false;     // a terminal, and NO_COLOR is not set
  bool progress = false;                           // err is a terminal

  // Throws Interrupted once a signal came.
  void check_interrupted() const;
};

// The op of that name. Throws InputError that says which was meant where there is none.
const Op& op_named(const Context& context, const std::string& name);

// The case files that the build embedded (corpora/issue-54907), sorted by name.
std::vector<EmbeddedFile> embedded_corpus();
// What dump --emit fills in (harness/commands/templates), by format.
std::vector<EmbeddedFile> embedded_templates();
// The version and revision that this program was built from.
ToolInfo tool_info();

}  // namespace dcpcheck
