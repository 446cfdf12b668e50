#include "properties/probe_questions.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "properties/facts.hpp"

namespace dcpcheck {
namespace {

// Whether the case's memory is as a kernel expects it: what it looks like, not what it holds.
void ask_of_groups(const Op& op, std::vector<Question>& out) {
  if (takes_any_groups(op)) return;
  for (const std::string& group : groups_of(op)) {
    const std::string absent = "!" + group + ".present || ";
    const auto change = [group](auto&& f) {
      return [group, f](Case& value) {
        const auto found = value.geometry.caches.find(group);
        if (found != value.geometry.caches.end()) f(found->second);
      };
    };
    out.push_back({{Expression(absent + group + ".block_stride_padding == 0"), group + " blocks that are packed"},
                   {change([](CacheGroup& cache) { cache.block_stride_padding = 0; })}});
    out.push_back({{Expression(absent + group + ".kernel_block_size == " + group + ".block_size"),
                    "kernel blocks of " + group + " that are whole blocks"},
                   {change([](CacheGroup& cache) { cache.kernel_block_size = cache.block_size; })}});
    if (group != "mla" && std::find(op.caches.begin(), op.caches.end(), "mla") != op.caches.end())
      out.push_back({{Expression(absent + "!" + group + ".own_map"), "no slot map of " + group + "'s own"},
                     {change([](CacheGroup& cache) { cache.slot_mapping = "same"; })}});
    out.push_back({{Expression(absent + group + ".mapped"), "a slot map of " + group},
                   {change([](CacheGroup& cache) { cache.slot_mapping = "dcp"; })},
                   true});
    out.push_back({{Expression(group + ".present"), "a cache " + group},
                   {[group](Case& value) { value.geometry.caches.try_emplace(group); }},
                   true});
    out.push_back({{Expression("!" + group + ".present"), "no cache " + group},
                   {[group](Case& value) { value.geometry.caches.erase(group); }},
                   true});
  }
}

void ask_of_layouts(const Op& op, std::vector<Question>& out) {
  for (const TensorSpec& tensor : op.tensors) {
    if (!tensor.strided || tensor.per_group) continue;
    out.push_back({{Expression(tensor.name + ".dense"), "rows of " + tensor.name + " that follow one another"},
                   {[name = tensor.name](Case& value) { value.layout.erase(name); }}});
  }
}

void ask_of_flag(const Param& param, std::vector<Question>& out) {
  for (const bool wanted : {true, false})
    out.push_back({{Expression((wanted ? "" : "!") + param.name), param.name + (wanted ? "" : " off")},
                   {[name = param.name, wanted](Case& value) { value.params[name] = wanted; }},
                   true});
}

// A layout of a cache that a case does not have, or does not write, is none that the kernel must know.
void ask_of_choice(const Op& op, const Param& param, std::vector<Question>& out) {
  std::string unwritten;
  for (const TensorSpec& tensor : op.tensors) {
    const bool named = std::any_of(tensor.records.begin(), tensor.records.end(),
                                   [&](const Record& record) { return mentions(record.when, param.name); });
    if (tensor.role == Role::cache && named) unwritten = "!" + tensor.cache + ".present || !" + tensor.cache + ".mapped || ";
  }
  for (const std::string& refused : param.choices) {
    // To each of the others: a kernel may know one of them alone.
    Question question{
        {Expression(unwritten + param.name + " != '" + refused + "'"), "another " + param.name + " than " + refused}, {}};
    for (const std::string& other : param.choices) {
      if (other == refused) continue;
      question.mends.emplace_back([name = param.name, other](Case& value) { value.params[name] = other; });
    }
    if (!question.mends.empty()) out.push_back(std::move(question));
  }
}

void ask_of_integer(const Param& param, std::vector<Question>& out) {
  for (std::int64_t divisor = 2; divisor <= 128 && divisor <= param.max; divisor *= 2) {
    const std::string text = std::to_string(divisor);
    out.push_back({{Expression(param.name + " % " + text + " == 0"), param.name + " of a multiple of " + text},
                   {[name = param.name, divisor, most = param.max](Case& value) {
                     const std::int64_t up = (value.integer(name) + divisor - 1) / divisor * divisor;
                     value.params[name] = up <= most ? up : most / divisor * divisor;
                   }}});
  }
  if (param.min == 0)
    out.push_back({{Expression(param.name + " > 0"), param.name + " over 0"},
                   {[name = param.name, plain = param.value](Case& value) { value.params[name] = plain; }},
                   true});
}

}  // namespace

std::vector<Question> questions_of(const Op& op) {
  std::vector<Question> out;
  ask_of_groups(op, out);
  ask_of_layouts(op, out);
  for (const Param& param : op.params) {
    if (param.kind == Param::Kind::flag) ask_of_flag(param, out);
    if (param.kind == Param::Kind::choice) ask_of_choice(op, param, out);
    if (param.kind == Param::Kind::integer) ask_of_integer(param, out);
  }
  return out;
}

}  // namespace dcpcheck
