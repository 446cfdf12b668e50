#include "harness/adapters/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "harness/adapters/dcpcheck_kernel.h"
#include "harness/adapters/floating_point_mode.hpp"
#include "harness/core/error.hpp"
#include "harness/core/reader.hpp"

namespace dcpcheck {
namespace {

constexpr std::size_t kMostEntries = 4096;  // of a list: a count past it is garbage
constexpr std::size_t kMostText = 4096;     // bytes of a text

// A word of the library's as it can be shown on one line.
std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

class Library {
 public:
  explicit Library(const std::string& spec) : spec_(spec) {
    const std::string path = std::filesystem::absolute(spec.substr(kLibrary.size())).string();
    handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    std::string why = ::dlerror();
    if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);
    throw InputError(spec + ": it cannot be loaded: " + printable(why));
  }
  ~Library() {
    const DefaultFloatingPoint mode;  // its destructors may change it, too
    static_cast<void>(::dlclose(handle_));
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class Function>
  Function* function(const char* name) const {
    void* const address = ::dlsym(handle_, name);
    if (address == nullptr) throw InputError(spec_ + ": it has no function " + name + "()");
    return reinterpret_cast<Function*>(address);
  }

 private:
  std::string spec_;
  void* handle_ = nullptr;
};

// Reads what a library says of itself.
class Reading {
 public:
  Reading(std::string spec, const dcpcheck_description& from) : spec_(std::move(spec)), from_(from) {}

  Declaration declaration() const {
    Declaration declared;
    declared.name = text(from_.name, "the kernel's name");
    if (from_.doc != nullptr) declared.doc = text(from_.doc, "its doc");
    each(from_.options, from_.option_count, "contract options", [&](const dcpcheck_option& option) {
      const std::string name = text(option.name, "a contract option's name");
      const std::string value = text(option.value, "a contract option's value");
      if (name != kPreset) return declared.options[name].push_back(value);
      if (!declared.preset.empty()) fail("it follows two presets, '" + declared.preset + "' and '" + value + "'");
      declared.preset = value;
    });
    if (from_.tensors != nullptr) {
      declared.tensors.emplace();
      each(from_.tensors, from_.tensor_count, "tensors",
           [&](const char* name) { declared.tensors->push_back(text(name, "a tensor's name")); });
    }
    each(from_.requirements, from_.requirement_count, "requirements", [&](const dcpcheck_requirement& requirement) {
      const std::string that = text(requirement.that, "a requirement");
      const std::string say = requirement.say == nullptr ? "" : text(requirement.say, "a requirement's sentence");
      try {
        declared.requirements.push_back({Expression(that), say});
      } catch (const InputError& error) {
        fail("a requirement of it is none: " + std::string(error.what()));
      }
    });
    return declared;
  }

  const Op& op(const Ops& ops) const { return op_of_kernel(text(from_.op, "the op's name"), ops, spec_); }

  std::int32_t devices() const {
    if (from_.devices < 1 || from_.devices > (DCPCHECK_HOST | DCPCHECK_CUDA))
      fail("it says that it runs on " + std::to_string(from_.devices) + ", which is neither DCPCHECK_HOST nor DCPCHECK_CUDA");
    return from_.devices;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw InputError(spec_ + ": " + why); }

  std::string text(const char* words, const std::string& what) const {
    if (words == nullptr || *words == '\0') fail("in what dcpcheck_describe() returns, " + what + " is missing");
    const std::string found(words, ::strnlen(words, kMostText + 1));
    if (found.size() > kMostText) fail("in what dcpcheck_describe() returns, " + what + " is longer than 4096 bytes");
    return printable(found);
  }

  template <class Entry, class F>
  void each(const Entry* entries, std::size_t count, const std::string& what, F f) const {
    if (count > kMostEntries || (entries == nullptr && count > 0))
      fail("in what dcpcheck_describe() returns there are " + std::to_string(count) + " " + what +
           (entries == nullptr ? ", at no address" : ", which is more than 4096"));
    for (std::size_t i = 0; i < count; ++i) f(entries[i]);
  }

  std::string spec_;
  const dcpcheck_description& from_;
};

std::int32_t dtype_of(DType type) {
  switch (type) {
    case DType::u8: return DCPCHECK_U8;
    case DType::bf16: return DCPCHECK_BF16;
    case DType::e4m3: return DCPCHECK_E4M3;
    case DType::fp32: return DCPCHECK_FP32;
    case DType::i32: return DCPCHECK_I32;
    case DType::i64: return DCPCHECK_I64;
    case DType::fp64: return DCPCHECK_FP64;
  }
  return -1;
}

std::vector<dcpcheck_tensor> tensors_of(const Launch& launch) {
  std::vector<dcpcheck_tensor> tensors;
  for (const TensorPlan& tensor : launch.plan.tensors) {
    const auto found = launch.tensors.find(tensor.name);
    if (found == launch.tensors.end()) throw HarnessError("a launch came without its tensor " + tensor.name);
    const View& view = found->second;
    tensors.push_back({found->first.c_str(), view.data, dtype_of(view.dtype), static_cast<std::int32_t>(view.shape.size()),
                       view.shape.data(), view.strides.data()});
  }
  return tensors;
}

// Points into the plan.
std::vector<dcpcheck_scalar> scalars_of(const Plan& plan) {
  std::vector<dcpcheck_scalar> scalars;
  for (const auto& [name, term] : plan.environment) {
    const auto* integer = std::get_if<std::int64_t>(&term);
    if (integer != nullptr) scalars.push_back({name.c_str(), DCPCHECK_INTEGER, 0, *integer, nullptr});
    if (integer == nullptr) scalars.push_back({name.c_str(), DCPCHECK_TEXT, 0, 0, std::get<std::string>(term).c_str()});
  }
  for (const auto& [name, value] : plan.value.params) {
    const auto* number = std::get_if<float>(&value);
    if (number != nullptr) scalars.push_back({name.c_str(), DCPCHECK_NUMBER, *number, 0, nullptr});
  }
  return scalars;
}

std::string reason_in(std::array<char, kMostText>& message) {
  message.back() = '\0';
  const std::string reason = message.data();
  return reason.empty() ? "it gave no reason" : printable(reason);
}

using Run = int(const dcpcheck_launch*);

// What run() answers, or what came instead of an answer.
LaunchError answer_of(Run* run, const dcpcheck_launch& launch, std::array<char, kMostText>& message) {
  try {
    const int answer = run(&launch);
    if (answer == DCPCHECK_OK) return {};
    if (answer == DCPCHECK_SKIP) return {LaunchError::Kind::skipped, reason_in(message)};
    if (answer == DCPCHECK_REFUSED) return {reason_in(message)};
    return {"dcpcheck_run() answered " + std::to_string(answer) + ", which is no answer"};
  } catch (const std::exception& error) {
    return {"dcpcheck_run() threw an exception: " + printable(error.what())};
  } catch (...) {
    return {"dcpcheck_run() threw an exception"};
  }
}

LaunchError launch_on(dcpcheck_device device, Run* run, const Launch& launch) {
  const std::vector<dcpcheck_tensor> tensors = tensors_of(launch);
  const std::vector<dcpcheck_scalar> scalars = scalars_of(launch.plan);
  std::array<char, kMostText> message{};
  const dcpcheck_launch asked{device,         launch.threads, launch.rank,    launch.plan.op->name.c_str(),
                              tensors.data(), tensors.size(), scalars.data(), scalars.size(),
                              launch.stream,  message.data(), message.size()};
  const DefaultFloatingPoint mode;
  LaunchError error = answer_of(run, asked, message);
  const std::string changed = mode.changed();
  if (changed.empty()) return error;
  return {LaunchError::Kind::floating_point_mode, "the kernel left its thread's floating-point mode changed: " + changed};
}

}  // namespace

Kernel load_library(const std::string& spec, const Ops& ops) {
  if (spec.size() == kLibrary.size()) throw InputError("--kernel " + spec + " names no file");
  const DefaultFloatingPoint mode;  // a library built with -ffast-math changes it where it is loaded
  const auto library = std::make_shared<const Library>(spec);
  auto* const describe = library->function<const dcpcheck_description*()>("dcpcheck_describe");
  auto* const run = library->function<Run>("dcpcheck_run");
  const dcpcheck_description* const description = describe();
  if (description == nullptr) throw InputError(spec + ": dcpcheck_describe() returned a null pointer");
  if (description->abi_version != DCPCHECK_ABI_VERSION)
    throw InputError(spec + ": it was built for version " + std::to_string(description->abi_version) +
                     " of dcpcheck_kernel.h, and this dcpcheck has version " + std::to_string(DCPCHECK_ABI_VERSION));
  const Reading reading(spec, *description);
  const Op& op = reading.op(ops);
  const std::int32_t devices = reading.devices();
  Kernel kernel;
  kernel.name = spec;
  kernel.op = op.name;
  kernel.declared = reading.declaration();
  kernel.doc = kernel.declared->doc;
  apply_preset(*kernel.declared, op, spec);
  check_declaration(*kernel.declared, op, spec);
  if ((devices & DCPCHECK_HOST) != 0)
    kernel.host = [library, run](const Launch& launch) { return launch_on(DCPCHECK_HOST, run, launch); };
  if ((devices & DCPCHECK_CUDA) != 0)
    kernel.cuda = [library, run](const Launch& launch) { return launch_on(DCPCHECK_CUDA, run, launch); };
  return kernel;
}

}  // namespace dcpcheck
