#include "harness/commands/select.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "harness/core/error.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr std::string_view kBuiltin = "builtin:";

[[noreturn]] void no_such_kernel(const std::vector<Kernel>& kernels, const std::string& spec, const std::string& bare) {
  std::vector<std::string> known;
  for (const Kernel& kernel : kernels) {
    if (kernel.declared) continue;
    known.push_back(kernel.op + (kernel.fault.empty() ? "" : "@" + kernel.fault));
    if (!kernel.fault.empty()) known.push_back("@" + kernel.fault);
  }
  const std::string near = text::nearest(bare, known);
  throw InputError("--kernel: there is no kernel '" + text::printable(spec) + "'" +
                   (near.empty() ? "; dcpcheck kernels shows them" : ": did you mean " + near + "?"));
}

struct Spec {
  std::optional<std::string> op;  // that stands before "="
  std::string kernel;
};

// A file's path, or a command, may have a "=" as well.
Spec parse(const std::string& spec) {
  const std::size_t equals = spec.find('=');
  if (equals == std::string::npos || equals > spec.find(':')) return {std::nullopt, spec};
  return {spec.substr(0, equals), spec.substr(equals + 1)};
}

void load(Context& context, const std::string& spec) {
  std::vector<Kernel>& kernels = context.kernels;
  if (std::any_of(kernels.begin(), kernels.end(), [&](const Kernel& kernel) { return kernel.name == spec; })) return;
  if (std::optional<Kernel> kernel = context.load_kernel(spec, context.ops)) kernels.push_back(std::move(*kernel));
}

}  // namespace

std::vector<const Kernel*> select_kernels(Context& context, const std::vector<std::string>& specs) {
  std::vector<Kernel>& kernels = context.kernels;
  for (const std::string& spec : specs) load(context, parse(spec).kernel);
  std::vector<const Kernel*> selected;
  for (const std::string& spec : specs) {
    const Spec wanted = parse(spec);
    const std::string& named = wanted.kernel;
    const std::string bare = named.starts_with(kBuiltin) ? named.substr(kBuiltin.size()) : named;
    const std::size_t at = std::min(bare.find('@'), bare.size());
    const std::string op = bare.substr(0, at);
    const std::string fault = at < bare.size() ? bare.substr(at + 1) : "";
    const bool any_op = op.empty() && !fault.empty() && bare == named;
    const auto is_named = [&](const Kernel& kernel) {
      if (kernel.declared) return kernel.name == named;
      return kernel.fault == fault && (any_op || kernel.op == op) && at + 1 != bare.size();
    };
    bool known = false;
    for (const Kernel& kernel : kernels) {
      if (!is_named(kernel)) continue;
      if (wanted.op && kernel.declared && kernel.op != *wanted.op)
        throw InputError("--kernel " + text::printable(spec) + ": that kernel is one of " + kernel.op);
      if (wanted.op && kernel.op != *wanted.op) continue;
      known = true;
      if (std::find(selected.begin(), selected.end(), &kernel) == selected.end()) selected.push_back(&kernel);
    }
    if (!known) no_such_kernel(kernels, spec, !wanted.op || wanted.op->empty() || at > 0 ? bare : *wanted.op + bare);
  }
  return selected;
}

const Law& law_named(const std::string& name) {
  if (const Law* const law = find_law(name)) return *law;
  std::vector<std::string> known;
  for (const Law& law : all_laws()) known.push_back(law.name);
  const std::string near = text::nearest(name, known);
  throw InputError("--law: there is no law '" + text::printable(name) + "'" +
                   (near.empty() ? "; dcpcheck laws shows them" : ": did you mean " + near + "?"));
}

std::map<std::string, std::vector<const Kernel*>> expected_kernels(const std::vector<Kernel>& kernels,
                                                                   const std::vector<NamedCase>& cases) {
  std::map<std::string, std::vector<const Kernel*>> by_op;
  for (const NamedCase& one : cases) {
    const std::string& op = one.op->name;
    std::vector<const Kernel*>& selected = by_op[op];
    if (const Kernel* fixed = fixed_kernel(kernels, op); fixed != nullptr && selected.empty()) selected.push_back(fixed);
    for (const std::string& named : expected_faults(one.file)) {
      const auto is_it = [&](const Kernel& kernel) {
        return runs_on(*one.op, kernel) && !kernel.fault.empty() &&
               (kernel.fault == named || kernel.op + "@" + kernel.fault == named);
      };
      const auto found = std::find_if(kernels.begin(), kernels.end(), is_it);
      if (found == kernels.end())
        throw InputError(one.reference + ": /expect names the fault '" + text::printable(named) + "', which no kernel of " +
                         op + " has");
      if (std::count_if(kernels.begin(), kernels.end(), is_it) > 1)
        throw InputError(one.reference + ": /expect names the fault '" + text::printable(named) +
                         "', which kernels of several ops of " + op + " have: say which, as in \"" + found->op + "@" +
                         found->fault + "\"");
      if (std::find(selected.begin(), selected.end(), &*found) == selected.end()) selected.push_back(&*found);
    }
  }
  return by_op;
}

}  // namespace dcpcheck
