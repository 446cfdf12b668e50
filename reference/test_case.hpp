// For tests: a case worked out from its JSON, what the reference says of it, and the judging of stored rows.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/core/case.hpp"
#include "harness/core/inputs.hpp"
#include "harness/core/plan.hpp"
#include "harness/oracle/judge.hpp"
#include "reference/builtin_ops.hpp"
#include "reference/test_kernel.hpp"

namespace dcpcheck::reference::testing {

inline const std::map<std::string, BuiltinOp, std::less<>>& ops() {
  static const auto all = builtin_ops();
  return all;
}

// The case in `text`, JSON as in a case file's "case".
inline Plan plan_of(const std::string& text) {
  Ops known;
  for (const auto& [name, builtin] : ops()) known.emplace(name, builtin.op);
  const Case value = case_from_json(known, json::parse(text, "test"), "test");
  return make_plan(ops().find(value.op)->second.op, value, std::int64_t{1} << 32);
}

struct Worked {
  Plan plan;
  Inputs inputs;
  Expected expected;

  explicit Worked(const std::string& text, const ReferenceOptions& options = {}, std::int64_t rank = 0)
      : plan(plan_of(text)), inputs(make_inputs(plan)) {
    refresh(options, rank);
  }
  // The reference once more, after a change of the inputs.
  void refresh(const ReferenceOptions& options = {}, std::int64_t rank = 0) {
    expected = ops().find(plan.value.op)->second.reference(plan, inputs, rank, options);
  }
};

// The field's dtype, and what its codes are divided by (empty: nothing).
struct FieldKind {
  DType dtype = DType::bf16;
  std::string scaled_by;
  std::int64_t tile = 0;
};

inline FieldKind kind_of(const Plan& plan, const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return {plan.tensor(name).dtype, "", 0};
  for (const FieldPlan& field : plan.tensor(name.substr(0, dot)).cache.fields) {
    if (field.name == name.substr(dot + 1)) return {field.dtype, field.scaled_by, field.tile};
  }
  return {};
}

// Inadmissible elements of one token's row, by field; fields with none are left out.
inline std::map<std::string, int> judge_token(const Worked& worked, std::int64_t token, const Stored& stored) {
  std::map<std::string, int> wrong;
  const auto chosen = [&](const char* option, const char* choice) {  // not every op has every option
    const auto found = worked.plan.value.contract.find(option);
    return found != worked.plan.value.contract.end() && found->second == choice;
  };
  for (const auto& [name, bytes] : stored) {
    const FieldKind kind = kind_of(worked.plan, name);
    const Comparison how{kind.dtype, {!chosen("e4m3_overflow", "nan"), chosen("nan", "clamp")}, chosen("division", "full")};
    std::vector<float> scales;
    if (kind.scaled_by == "mla_scale") {
      scales = {static_cast<float>(Reader(worked.plan, worked.inputs, "mla_scale", 0).number(0))};
    } else if (!kind.scaled_by.empty()) {
      const auto& held = stored.find(name.substr(0, name.find('.') + 1) + kind.scaled_by)->second;
      scales.resize(held.size() / sizeof(float));
      std::memcpy(scales.data(), held.data(), held.size());
    }
    int count = 0;
    judge_row(worked.expected.find(name)->second, token, bytes.data(), how, scales, kind.tile,
              [&](std::int64_t, double) { ++count; });
    if (count != 0) wrong[name] = count;
  }
  return wrong;
}

}  // namespace dcpcheck::reference::testing
