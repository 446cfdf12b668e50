#include "harness/campaign/source.hpp"

#include <algorithm>
#include <utility>

#include "harness/campaign/words.hpp"
#include "harness/core/error.hpp"
#include "harness/core/philox.hpp"
#include "harness/core/plan.hpp"
#include "harness/core/reader.hpp"
#include "harness/exec/generate.hpp"

namespace dcpcheck {

json::Value to_json(const Declaration& declaration) {
  json::Object options;
  for (const auto& [name, values] : declaration.options) options.emplace_back(name, array_of(values));
  json::Array requirements;
  for (const Requirement& requirement : declaration.requirements)
    requirements.push_back(json::Object{{"that", requirement.that.text()}, {"say", requirement.say}});
  return json::Object{{"options", std::move(options)},
                      {"tensors", declaration.tensors ? json::Value(array_of(*declaration.tensors)) : json::Value()},
                      {"requirements", std::move(requirements)}};
}

Declaration declaration_from_json(const json::Value& value, const std::string& source) {
  const Reader reader(value, source);
  reader.object({"options", "tensors", "requirements"});
  Declaration declaration;
  for (const auto& [name, values] : reader.at("options").members()) declaration.options[name] = words_of(values);
  const Reader tensors = reader.at("tensors");
  if (tensors.value() != json::Value()) declaration.tensors = words_of(tensors);
  for (const Reader& requirement : reader.at("requirements").elements())
    declaration.requirements.push_back({Expression(requirement.at("that").string()), requirement.at("say").string()});
  return declaration;
}

CaseSource::CaseSource(const Ops& ops, Lane lane, std::optional<Case> base, std::uint64_t seed)
    : ops_(ops), lane_(std::move(lane)), base_(std::move(base)), seed_(seed) {
  if (lane_.declaration != json::Value()) declared_ = declaration_from_json(lane_.declaration, "what a kernel declares");
}

const Generator& CaseSource::generator() {
  std::call_once(made_, [&] {
    GenerateOptions options;
    const Op& op = ops_.at(lane_.op);
    if (!op.pipeline.empty() || declared_) {
      options.check = [this, &op, memory = options.memory](const Case& value) {
        if (!op.pipeline.empty()) check_generate(ops_, op, value, memory, "case");
        if (!declared_) return;
        // Of cases that the kernel is not for none is drawn.
        const std::string why = why_not(*declared_, make_plan(op, value, memory));
        if (!why.empty()) throw InputError(why);
      };
    }
    try {
      generator_ = std::make_unique<Generator>(op, options);
    } catch (const InputError& error) {
      throw InputError(lane_.kernel + ": no case of " + lane_.op + " was found that it is for: " + error.what());
    }
  });
  return *generator_;
}

Case CaseSource::at(std::uint64_t index) {
  if (!base_) return generator()(seed_, index);
  Case value = *base_;
  value.seed = Stream(seed_, "campaign").word(index);
  return value;
}

json::Value CaseSource::coverage(const Intervals& indices) {
  if (base_) return {};
  const Generator& draw = generator();
  Coverage met(draw.dimensions(), draw.covering().met);
  for (const auto& [from, to] : indices.all())
    for (std::uint64_t index = from; index < std::min(to, draw.covering_cases()); ++index)
      met.add(make_plan(draw.op(), draw(seed_, index), draw.options().memory));
  return met.to_json();
}

std::int64_t CaseSource::covering_cases() { return base_ ? 0 : static_cast<std::int64_t>(generator().covering_cases()); }

}  // namespace dcpcheck
