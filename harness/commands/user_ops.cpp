#include "harness/commands/user_ops.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"
#include "properties/law.hpp"

namespace dcpcheck {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".op.json";

std::vector<fs::path> files_in(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error))
    if (entries->path().filename().string().ends_with(kSuffix)) files.push_back(entries->path());
  if (error) throw InputError("--ops " + text::printable(folder) + ": the folder cannot be read: " + error.message());
  if (files.empty()) throw InputError("--ops " + text::printable(folder) + ": there is no *.op.json in it");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

void add_ops(Context& context, const std::string& folder) {
  Ops ops = context.ops;
  std::vector<std::pair<std::string, std::string>> added;  // op, and the file that it is from
  for (const fs::path& file : files_in(folder)) {
    const std::string source = text::printable(file.string());
    Op op = op_from_json(json::parse(json::text_of(file.string()), source), source);
    if (!op.pipeline.empty()) throw InputError(source + ": /pipeline is there, but an op of one's own is one launch");
    if (op.reference.empty())
      throw InputError(source + ": /reference is missing, but what is right of the op's outputs must be told");
    check_laws_of(op);
    check_expressions(op, source);
    const std::string name = op.name;
    if (!ops.emplace(name, std::move(op)).second)
      throw InputError(source + ": /name is \"" + text::printable(name) + "\", but there is an op of that name already");
    added.emplace_back(name, file.string());
  }
  std::map<std::string, Reference, std::less<>> references;
  for (const auto& [name, file] : added) {
    std::optional<Reference> reference = context.load_reference(ops.at(name), fs::path(file).parent_path(), ops);
    if (!reference)
      throw InputError(text::printable(file) + ": /reference is \"" + text::printable(ops.at(name).reference) +
                       "\", but a lib:FILE or exec:COMMAND is needed");
    references.emplace(name, std::move(*reference));
  }
  context.ops = std::move(ops);
  context.references.merge(references);
  context.op_folders.push_back(folder);
}

}  // namespace dcpcheck
