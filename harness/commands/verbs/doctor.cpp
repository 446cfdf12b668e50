#include <memory>

#include "harness/commands/context.hpp"
#include "harness/commands/machine.hpp"
#include "harness/commands/options.hpp"
#include "harness/commands/verb.hpp"
#include "harness/exec/nccl_library.hpp"
#include "harness/report/json_report.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck::verbs {
namespace {

// The bit self-test on one backend.
struct SelfTest {
  std::string backend, where;
  std::string difference;  // empty: it computes the bits that it should
};

SelfTest test(const Context& context, Backend& backend) {
  return {backend.name(), backend.description(), context.self_test(backend)};
}

std::string joined(const std::vector<std::string>& words, const std::string& none) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : ", ") + word;
  return line.empty() ? none : line;
}

json::Value to_json(const Context& context, const Machine& machine, const CudaFacts& cuda, const std::string& no_cuda,
                    const std::string& nccl, const std::vector<SelfTest>& tests) {
  json::Array devices(cuda.devices.begin(), cuda.devices.end());
  const std::vector<std::string> names = cpu_features();
  json::Array features(names.begin(), names.end());
  json::Object packages_object;
  for (const auto& [name, version] : packages()) packages_object.emplace_back(name, version);
  json::Array tests_array;
  for (const SelfTest& one : tests)
    tests_array.emplace_back(
        json::Object{{"backend", one.backend}, {"ok", one.difference.empty()}, {"difference", one.difference}});
  return json::Object{{"tool", dcpcheck::to_json(context.tool)},
                      {"environment", dcpcheck::to_json(machine)},
                      {"cpu_features", std::move(features)},
                      {"devices", std::move(devices)},
                      {"no_cuda", no_cuda.empty() ? json::Value() : json::Value(no_cuda)},
                      {"nccl", nccl.empty() ? json::Value() : json::Value(nccl)},
                      {"packages", std::move(packages_object)},
                      {"self_tests", std::move(tests_array)}};
}

int run_doctor(const Arguments& arguments, Context& context) {
  const JsonTarget target(arguments, context);
  const RunSettings settings = run_settings({});  // the default threads
  const CudaFacts cuda = cuda_facts();
  std::string no_cuda;
  const bool has_cuda = cuda_available(&no_cuda);
  if (has_cuda) no_cuda.clear();

  std::string no_nccl;
  const std::shared_ptr<const NcclLibrary> nccl = NcclLibrary::find(&no_nccl);

  std::vector<SelfTest> tests;
  const std::unique_ptr<Backend> host = make_host_backend();
  tests.push_back(test(context, *host));
  const std::unique_ptr<Backend> device = has_cuda ? make_cuda_backend() : nullptr;
  if (device) tests.push_back(test(context, *device));
  const Machine machine = describe_machine(settings.threads, device.get());

  std::ostream& out = target.console();
  const auto line = [&](const std::string& name, const std::string& value) {
    out << text::wrap(text::fit(name, 14) + text::printable(value), 80, 14);
  };
  line("dcpcheck", context.tool.version + ", revision " + context.tool.revision);
  line("System", machine.os);
  line("CPU", machine.cpu + ", " + text::count(machine.threads, "thread"));
  line("CPU features", joined(cpu_features(), "none that matter"));
  line("Compiler", machine.compiler);
  line("CUDA toolkit", cuda.toolkit.empty() ? "none: built without the CUDA backend" : cuda.toolkit);
  line("CUDA driver", cuda.driver.empty() ? "none" : cuda.driver);
  line("GPUs", joined(cuda.devices, "none"));
  if (!no_cuda.empty()) line("CUDA backend", "not to be had: " + no_cuda);
  line("NCCL", nccl != nullptr ? nccl->version() : no_nccl);
  std::vector<std::string> versions;
  for (const auto& [name, version] : packages()) versions.push_back(name + " " + version);
  line("Packages", joined(versions, "none"));
  bool healthy = true;
  for (const SelfTest& one : tests) {
    healthy = healthy && one.difference.empty();
    line("Self-test",
         one.backend + " (" + one.where + "): " + (one.difference.empty() ? "every bit as it should be" : one.difference));
  }
  if (target.wanted()) target.write(to_json(context, machine, cuda, no_cuda, nccl != nullptr ? nccl->version() : "", tests));
  return healthy ? 0 : 99;
}

}  // namespace

Verb doctor() {
  return {"doctor",
          "Show what this machine and build have, and whether they compute the right bits",
          "Exit code 99: a backend does not compute the bits that it should, and repro and run would refuse it.",
          {},
          {json_option()},
          run_doctor};
}

}  // namespace dcpcheck::verbs
