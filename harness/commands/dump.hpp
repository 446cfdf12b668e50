// What a case's launch is given, what is admissible of it, and what a kernel made of it, for other programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/commands/cases.hpp"
#include "harness/commands/context.hpp"
#include "harness/commands/options.hpp"
#include "harness/exec/runner.hpp"

namespace dcpcheck {

// Throws InputError for a case of which there can be no arrays: one of a pipeline, which is many launches, or of a sparse
// cache.
void check_dump(const NamedCase& named);
Prepared prepare_dump(const Context& context, const NamedCase& named, const RunSettings& settings);

// The elements of a tensor in C order, taken out of its storage; of a cache, its blocks with the bytes between them.
std::string dense_elements(const TensorPlan& tensor, const std::byte* storage);
std::vector<std::int64_t> dense_shape(const TensorPlan& tensor);

// The case as a file that `dcpcheck run` takes.
json::Value case_document(const NamedCase& named);

// Arrays (harness/report/npy.hpp) and index.json, in the folder `path`, which appears whole or not at all: inputs, what
// `kernel` left in outputs and caches, and, where `expected` asks for it, what is admissible. Returns what it wrote, for a
// person, and why the kernel left nothing, in `failed`. Throws InputError where `path` is there already.
struct DumpedFolder {
  std::string lines;
  LaunchError failed;
};
DumpedFolder dump_folder(const Context& context, const NamedCase& named, const Kernel& kernel, const RunSettings& settings,
                         const std::string& path, bool expected);

// The template `format` (harness/commands/templates) with the case in it: a file that judges a kernel by itself. Throws
// InputError where there is no such template, or the case's data are over kMostEmbedded bytes.
constexpr std::int64_t kMostEmbedded = std::int64_t{8} << 20;
std::string dump_test_file(const Context& context, const NamedCase& named, const RunSettings& settings,
                           const std::string& format);

}  // namespace dcpcheck
