#include "harness/report/json_report.hpp"

#include <string>
#include <utility>

namespace dcpcheck {
namespace {

using json::Array;
using json::Object;
using json::text_or_null;
using json::Value;

Array numbers(const std::vector<std::int64_t>& values) { return Array(values.begin(), values.end()); }

Array texts(const std::vector<std::string>& values) { return Array(values.begin(), values.end()); }

Value hex_or_null(const std::optional<std::uint64_t>& seed) {
  if (!seed) return {};
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 0; i < 16; ++i) text[static_cast<std::size_t>(i)] = digits[(*seed >> (60 - 4 * i)) & 15];
  return text;
}

Value element(const Element& value) {
  Object object{{"index", numbers(value.index)}};
  if (!value.field.empty()) object.emplace_back("field", value.field);
  object.emplace_back("got", value.got);
  object.emplace_back("admissible", value.admissible);
  return object;
}

Value violation(const Violation& value) {
  Array tokens, first;
  for (const auto& [begin, end] : value.tokens) tokens.emplace_back(Array{begin, end});
  for (const Element& wrong : value.first) first.push_back(element(wrong));
  Object object{{"reason", name_of(value.reason)}};
  if (!value.law.empty()) object.emplace_back("law", value.law);
  if (!value.stage.empty()) object.emplace_back("stage", value.stage);
  if (!value.op.empty()) object.emplace_back("op", value.op);
  object.emplace_back("buffer", value.buffer);
  object.emplace_back("rank", value.rank);
  object.emplace_back("tokens", std::move(tokens));
  object.emplace_back("token_rows", value.token_rows);
  object.emplace_back("count", value.count);
  object.emplace_back("first", std::move(first));
  return object;
}

Array ids_by_request(const std::vector<std::vector<std::int32_t>>& requests) {
  Array lists;
  for (const auto& ids : requests) lists.emplace_back(Array(ids.begin(), ids.end()));
  return lists;
}

Value tokens(const std::optional<Tokens>& value) {
  if (!value) return {};
  Array steps;
  for (const TokenStep& step : value->steps)
    steps.emplace_back(Object{{"stage", step.stage},
                              {"margin", step.known ? Value(step.margin) : Value()},
                              {"bound", step.known ? Value(step.bound) : Value()}});
  return Object{{"ids", ids_by_request(value->ids)}, {"digest", value->digest}, {"steps", std::move(steps)}};
}

// Beside run A's tokens, so that the two can be read in the same way.
Value tokens_poison_b(const std::optional<Tokens>& value) {
  if (!value) return {};
  return Object{{"ids", ids_by_request(value->poison_b_ids)}, {"digest", value->poison_b_digest}};
}

Value worst_error(const Verdict& verdict) {
  if (verdict.worst.buffer.empty()) return {};
  return Object{{"fraction", verdict.worst.fraction},
                {"buffer", verdict.worst.buffer},
                {"rank", verdict.worst.rank},
                {"index", numbers(verdict.worst.index)}};
}

Value expectation(const Expectation& value) {
  Object object{{"status", name_of(value.status)}};
  if (value.reasons) object.emplace_back("reasons", texts(*value.reasons));
  if (value.buffers) object.emplace_back("buffers", texts(*value.buffers));
  return object;
}

Value result(const Result& value) {
  const Verdict& verdict = value.verdict;
  Object outputs;
  for (const auto& [name, digest] : value.output_digests) outputs.emplace_back(name, digest);
  Object contract;
  for (const auto& [option, choice] : value.contract) contract.emplace_back(option, choice);
  Array violations;
  for (const Violation& one : verdict.violations) violations.push_back(violation(one));
  Object object{{"case", value.case_reference},
                {"id", value.id},
                {"name", value.name},
                {"op", value.op},
                {"kernel", value.kernel},
                {"fault", text_or_null(value.fault)},
                {"contract", std::move(contract)},
                {"backend", value.backend},
                {"world_size", value.world_size},
                {"status", name_of(verdict.status)},
                {"reason", name_of(verdict.reason)},
                {"detail", verdict.detail.empty() ? value.cause : verdict.detail},
                {"expected", expectation(value.expected)},
                {"as_expected", value.as_expected},
                {"digests", Object{{"inputs", text_or_null(value.inputs_digest)},
                                   {"all", text_or_null(value.all_digest)},
                                   {"outputs", std::move(outputs)}}},
                {"tokens", tokens(value.tokens)},
                {"tokens_poison_b", tokens_poison_b(value.tokens)},
                {"compared", verdict.compared},
                {"tainted", verdict.tainted},
                {"left_out", verdict.left_out},
                {"must_write", verdict.must_write},
                {"written", verdict.written},
                {"guarded", verdict.guarded},
                {"worst_error", worst_error(verdict)},
                {"violations", std::move(violations)},
                {"seconds", value.seconds},
                {"replay", value.replay}};
  // Only of a result that a law gave: after the kernel that it is about.
  if (!value.law.empty()) object.insert(object.begin() + 6, {"law", value.law});
  return object;
}

Value relation(const Relation& value) {
  Object object{{"scenario", value.scenario},
                {"quantity", value.quantity},
                {"fault", text_or_null(value.fault)},
                {"backend", value.backend},
                {"dcp1", value.dcp1},
                {"dcp4", texts(value.dcp4)},
                {"equal", value.equal},
                {"expected_equal", value.expected_equal}};
  if (value.quantity == kTokens) {
    object.emplace_back("dcp1_ids", ids_by_request(value.dcp1_ids));
    object.emplace_back("dcp4_ids", ids_by_request(value.dcp4_ids));
    object.emplace_back("inconclusive_at", value.inconclusive_at ? Value(*value.inconclusive_at) : Value());
  }
  return object;
}

Value summary(const Report& report) {
  const Summary value = summarise(report);
  Object object;
  for (const Status status : kStatuses) object.emplace_back(std::string(name_of(status)), value.counts.at(status));
  object.emplace_back("total", value.total);
  object.emplace_back("as_expected", value.as_expected);
  object.emplace_back("ok", value.ok);
  return object;
}

}  // namespace

json::Value to_json(const ToolInfo& tool) { return Object{{"version", tool.version}, {"revision", tool.revision}}; }

json::Value to_json(const Machine& machine) {
  return Object{{"os", machine.os},
                {"cpu", machine.cpu},
                {"threads", machine.threads},
                {"compiler", machine.compiler},
                {"cuda", text_or_null(machine.cuda)},
                {"driver", text_or_null(machine.driver)},
                {"device", text_or_null(machine.device)},
                {"devices", texts(machine.devices)},
                {"transport", machine.transport}};
}

json::Value report_to_json(const Report& report) {
  Array results, relations;
  for (const Result& one : report.results) results.push_back(result(one));
  for (const Relation& one : report.relations) relations.push_back(relation(one));
  return Object{{"schema", "dcpcheck.report/1"},          {"tool", to_json(report.tool)},
                {"environment", to_json(report.machine)}, {"command", texts(report.command)},
                {"seed", hex_or_null(report.seed)},       {"results", std::move(results)},
                {"relations", std::move(relations)},      {"summary", summary(report)}};
}

}  // namespace dcpcheck
