#include "harness/commands/select.hpp"

#include <algorithm>
#include <map>

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr std::string_view kBuiltin = "builtin:";

[[noreturn]] void no_such_kernel(const std::vector<Kernel>& kernels, const std::string& spec, const std::string& bare) {
  std::vector<std::string> known;
  for (const Kernel& kernel : kernels) {
    known.push_back(kernel.op + (kernel.fault.empty() ? "" : "@" + kernel.fault));
    if (!kernel.fault.empty()) known.push_back("@" + kernel.fault);
  }
  const std::string near = text::nearest(bare, known);
  throw InputError("--kernel: there is no kernel '" + text::printable(spec) + "'" +
                   (near.empty() ? "; dcpcheck kernels shows them" : ": did you mean " + near + "?"));
}

}  // namespace

std::vector<const Kernel*> select_kernels(const std::vector<Kernel>& kernels, const std::vector<std::string>& specs) {
  std::vector<const Kernel*> selected;
  for (const std::string& spec : specs) {
    const std::string bare = spec.starts_with(kBuiltin) ? spec.substr(kBuiltin.size()) : spec;
    const std::size_t at = std::min(bare.find('@'), bare.size());
    const std::string op = bare.substr(0, at);
    const std::string fault = at < bare.size() ? bare.substr(at + 1) : "";
    const bool any_op = op.empty() && !fault.empty() && bare == spec;
    const std::size_t before = selected.size();
    bool known = false;
    for (const Kernel& kernel : kernels) {
      if (kernel.fault != fault || (!any_op && kernel.op != op) || (at + 1 == bare.size())) continue;
      known = true;
      if (std::find(selected.begin(), selected.end(), &kernel) == selected.end()) selected.push_back(&kernel);
    }
    if (selected.size() == before && !known) no_such_kernel(kernels, spec, bare);
  }
  return selected;
}

const Kernel* fixed_kernel(const std::vector<Kernel>& kernels, const std::string& op) {
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const Kernel& kernel) { return kernel.op == op && kernel.fault.empty(); });
  return found == kernels.end() ? nullptr : &*found;
}

std::vector<const Kernel*> expected_kernels(const std::vector<Kernel>& kernels, const std::vector<NamedCase>& cases) {
  std::map<std::string, std::vector<const Kernel*>> by_op;
  for (const NamedCase& one : cases) {
    const std::string& op = one.op->name;
    std::vector<const Kernel*>& selected = by_op[op];
    if (const Kernel* fixed = fixed_kernel(kernels, op); fixed != nullptr && selected.empty()) selected.push_back(fixed);
    for (const std::string& fault : expected_faults(one.file)) {
      const auto found = std::find_if(kernels.begin(), kernels.end(),
                                      [&](const Kernel& kernel) { return kernel.op == op && kernel.fault == fault; });
      if (found == kernels.end())
        throw InputError(one.reference + ": /expect names the fault '" + text::printable(fault) + "', which no kernel of " +
                         op + " has");
      if (std::find(selected.begin(), selected.end(), &*found) == selected.end()) selected.push_back(&*found);
    }
  }
  std::vector<const Kernel*> all;
  for (const auto& [op, selected] : by_op) all.insert(all.end(), selected.begin(), selected.end());
  return all;
}

}  // namespace dcpcheck
