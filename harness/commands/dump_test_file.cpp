// dump --emit: a test of the case that stands by itself.
#include <algorithm>
#include <cstring>

#include "harness/commands/dump.hpp"
#include "harness/core/error.hpp"
#include "harness/core/packed.hpp"
#include "harness/exec/examine.hpp"
#include "harness/memory/write_set.hpp"
#include "harness/oracle/code_spans.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

constexpr std::size_t kLine = 100;

// The data of a template: JSON, and the bytes that it refers to, [begin, length].
class Data {
 public:
  json::Value add(std::string_view bytes) {
    json::Value place = json::Array{static_cast<std::int64_t>(raw_.size()), static_cast<std::int64_t>(bytes.size())};
    raw_ += bytes;
    return place;
  }
  template <class Number>
  json::Value add(const std::vector<Number>& values) {
    return add(std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Number)));
  }
  json::Value add(const Bytes& bytes) {
    return add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  std::size_t size() const { return raw_.size(); }

  // The length of the JSON in 8 bytes, the JSON, the bytes; compressed, as text.
  std::string packed(const json::Value& head) const {
    const std::string text = json::dump(head);
    std::string whole;
    for (int shift = 0; shift < 64; shift += 8) whole += static_cast<char>(text.size() >> shift & 0xFF);
    return base64_lines(zlib_compressed(whole + text + raw_), kLine);
  }

 private:
  std::string raw_;
};

json::Object scalars_of(const Plan& plan) {
  json::Object scalars;
  for (const auto& [name, term] : plan.environment) {
    const auto* integer = std::get_if<std::int64_t>(&term);
    scalars.emplace_back(name, integer != nullptr ? json::Value(*integer) : json::Value(std::get<std::string>(term)));
  }
  for (const auto& [name, value] : plan.value.params)
    if (const auto* number = std::get_if<float>(&value)) scalars.emplace_back(name, static_cast<double>(*number));
  return scalars;
}

class TestFile {
 public:
  explicit TestFile(Prepared& prepared, int threads) : prepared_(prepared), plan_(prepared.plan), threads_(threads) {}

  std::string data(const NamedCase& named) {
    json::Array tensors, expected;
    for (const TensorPlan& tensor : plan_.tensors) tensors.emplace_back(tensor_entry(tensor));
    const std::int64_t answers = plan_.op->rank_reference ? plan_.value.geometry.tp : 1;
    for (std::int64_t rank = 0; rank < answers; ++rank) expected.emplace_back(expected_entry(rank));
    const Comparison how = comparison_of(plan_.value, DType::e4m3);
    if (static_cast<std::int64_t>(data_.size()) > kMostEmbedded)
      throw InputError(named.reference + ": its data are " + std::to_string(data_.size()) + " bytes, and a test file holds " +
                       std::to_string(kMostEmbedded) +
                       " at the most: make the case smaller by --set, or write arrays by -o DIR");
    return data_.packed(json::Object{{"id", named.id},
                                     {"op", named.op->name},
                                     {"document", case_document(named)},
                                     {"tp", plan_.value.geometry.tp},
                                     {"scalars", scalars_of(plan_)},
                                     {"how", json::Object{{"saturate", how.e4m3.saturate},
                                                          {"clamp_nan", how.e4m3.clamp_nan},
                                                          {"full_division", how.full_division}}},
                                     {"tensors", std::move(tensors)},
                                     {"expected", std::move(expected)}});
  }

  // A line on each tensor, for whoever binds a kernel to them.
  std::string tensor_lines() const {
    std::string lines;
    for (const TensorPlan& tensor : plan_.tensors) {
      lines += "    " + tensor.name + ": " + role_of(tensor) + " " + std::string(name_of(tensor.dtype)) + " [";
      for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis)
        lines += (axis == 0 ? "" : ", ") + std::to_string(tensor.shape[axis]);
      lines += "]" + (tensor.in_place_of.empty() ? "" : ", on the memory of " + tensor.in_place_of) + "\n";
    }
    return lines;
  }

 private:
  static std::string role_of(const TensorPlan& tensor) {
    return tensor.role == Role::in ? "in" : tensor.role == Role::out ? "out" : "cache";
  }

  json::Value tensor_entry(const TensorPlan& tensor) {
    json::Object entry{{"name", tensor.name},
                       {"role", role_of(tensor)},
                       {"dtype", name_of(tensor.dtype)},
                       {"shape", json::numbers(tensor.shape)},
                       {"strides", json::numbers(tensor.strides)},
                       {"offset", tensor.offset},
                       {"bytes", tensor.bytes()},
                       {"in_place_of", tensor.in_place_of}};
    const std::int64_t ranks = plan_.value.geometry.tp;
    if (tensor.role == Role::in) {
      json::Array data;
      for (std::int64_t rank = 0; rank < (tensor.spec->per_rank ? ranks : 1); ++rank)
        data.emplace_back(data_.add(prepared_.inputs.get(tensor.name, rank)));
      entry.emplace_back("data", std::move(data));
      return entry;
    }
    if (tensor.role == Role::cache) add_cache(tensor, entry);
    json::Array spans;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<std::int64_t> flat;
      for (const Span& span : write_set(plan_, tensor, prepared_.inputs, rank))
        for (const std::int64_t number : {span.begin, span.end, std::int64_t{span.duty == Duty::must}, span.row, span.column,
                                          std::int64_t{span.field}, span.slot})
          flat.push_back(number);
      spans.emplace_back(data_.add(flat));
    }
    entry.emplace_back("spans", std::move(spans));
    return entry;
  }

  void add_cache(const TensorPlan& tensor, json::Object& entry) {
    const CachePlan& cache = tensor.cache;
    json::Array fields, before;
    for (const FieldPlan& field : cache.fields)
      fields.emplace_back(json::Object{{"name", field.name},
                                       {"dtype", name_of(field.dtype)},
                                       {"count", field.count},
                                       {"offset", field.offset},
                                       {"scaled_by", field.scaled_by},
                                       {"tile", std::max<std::int64_t>(field.tile, 1)}});
    // What the cached prefix left in it.
    for (const auto& records : prepared_.inputs.prefix.at(tensor.name)) {
      json::Array places;
      for (const auto& [slot, record] : records) {
        std::size_t from = 0;
        for (const FieldPlan& field : cache.fields) {
          const auto bytes = static_cast<std::size_t>(field.bytes());
          places.emplace_back(json::Array{cache.address(slot, field),
                                          data_.add(Bytes(record.begin() + static_cast<std::ptrdiff_t>(from),
                                                          record.begin() + static_cast<std::ptrdiff_t>(from + bytes)))});
          from += bytes;
        }
      }
      before.emplace_back(std::move(places));
    }
    entry.emplace_back("kernel_block_size", cache.kernel_block_size);
    entry.emplace_back("block_stride", cache.block_stride);
    entry.emplace_back("record_bytes", cache.record_bytes);
    entry.emplace_back("planar", cache.planar);
    entry.emplace_back("fields", std::move(fields));
    entry.emplace_back("before", std::move(before));
  }

  json::Value expected_entry(std::int64_t rank) {
    json::Object entry;
    const Expected& expected = expected_on(prepared_, rank, 0, threads_);
    for (const TensorPlan& tensor : plan_.tensors) {
      if (tensor.role == Role::out) {
        if (const auto found = expected.find(tensor.name); found != expected.end())
          entry.emplace_back(tensor.name, codes_entry(found->second, tensor.dtype, 1));
        continue;
      }
      if (tensor.role != Role::cache || tensor.slot_mapping.empty()) continue;
      for (const FieldPlan& field : tensor.cache.fields) {
        const std::string name = tensor.name + "." + field.name;
        const auto found = expected.find(name);
        if (field.count == 0 || found == expected.end()) continue;
        const bool in_record = std::any_of(tensor.cache.fields.begin(), tensor.cache.fields.end(),
                                           [&](const FieldPlan& other) { return other.name == field.scaled_by; });
        entry.emplace_back(name, in_record && !found->second.exact
                                     ? scaled_entry(found->second, field.dtype)
                                     : codes_entry(found->second, field.dtype, scale_of(field, in_record, rank)));
      }
    }
    return entry;
  }

  float scale_of(const FieldPlan& field, bool in_record, std::int64_t rank) const {
    float scale = 1;
    if (!field.scaled_by.empty() && !in_record)
      std::memcpy(&scale, prepared_.inputs.get(field.scaled_by, rank).data(), sizeof scale);
    return scale;
  }

  // A code for each element, and what else is right of those of which it does not say all.
  json::Value codes_entry(const Admissible& expected, DType dtype, float scale) {
    const Comparison how = comparison_of(plan_.value, dtype);
    const auto size = static_cast<std::size_t>(size_of(dtype));
    std::string codes;
    std::vector<std::int64_t> wider;
    for (std::int64_t element = 0; element < expected.rows * expected.columns; ++element) {
      const AdmissibleCodes right = admissible_spans(expected, element, how, scale);
      const CodeSpan first = right.spans.empty() ? CodeSpan{nan_code(dtype), nan_code(dtype)} : right.spans.front();
      codes.append(reinterpret_cast<const char*>(&first.low), size);
      if (right.spans.size() == 1 && first.low == first.high && !right.nan) continue;
      for (const CodeSpan& span : right.spans)
        wider.insert(wider.end(), {element, static_cast<std::int64_t>(span.low), static_cast<std::int64_t>(span.high)});
      if (right.nan) wider.insert(wider.end(), {element, -1, -1});
    }
    return json::Object{
        {"dtype", name_of(dtype)}, {"columns", expected.columns}, {"codes", data_.add(codes)}, {"wider", data_.add(wider)}};
  }

  // Codes that are judged against the scale that the kernel stores: the values before the division.
  json::Value scaled_entry(const Admissible& expected, DType dtype) {
    json::Array others;
    for (const Alternative& other : expected.alternatives)
      others.emplace_back(json::Array{other.element, other.value, other.error});
    return json::Object{{"dtype", name_of(dtype)},
                        {"columns", expected.columns},
                        {"value", data_.add(expected.value)},
                        {"error", data_.add(expected.error)},
                        {"others", std::move(others)}};
  }

  Prepared& prepared_;
  const Plan& plan_;
  int threads_;
  Data data_;
};

// Text that stands in a docstring.
std::string in_docstring(const std::string& text) {
  std::string out;
  for (const char c : text::printable(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string filled_in(std::string text, const std::string& name, const std::string& value) {
  const std::string mark = "@" + name + "@";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
    text.replace(at, mark.size(), value);
  return text;
}

}  // namespace

std::string dump_test_file(const Context& context, const NamedCase& named, const RunSettings& settings,
                           const std::string& format) {
  std::string text;
  std::vector<std::string> known;
  for (const EmbeddedFile& file : embedded_templates()) {
    known.push_back(file.name);
    if (file.name == format) text = file.text;
  }
  if (text.empty()) {
    const std::string near = text::nearest(format, known);
    throw InputError("--emit takes " + text::list(known) + ", not '" + text::printable(format) + "'" +
                     (near.empty() ? "" : ": did you mean " + near + "?"));
  }
  Prepared prepared = prepare_dump(context, named, settings);
  TestFile file(prepared, settings.threads);
  std::string command = "dcpcheck dump --emit " + format + " " + named.reference;
  for (const std::string& set : named.sets) command += " --set " + set;
  const std::string data = file.data(named);
  text = filled_in(std::move(text), "title",
                   in_docstring(named.op->name + ": " + (named.file.name.empty() ? named.id : named.file.name)));
  text = filled_in(std::move(text), "command", in_docstring(command));
  text = filled_in(std::move(text), "version", in_docstring(context.tool.version));
  text = filled_in(std::move(text), "id", named.id);
  text = filled_in(std::move(text), "op", named.op->name);
  text = filled_in(std::move(text), "tensors\n", file.tensor_lines());
  return filled_in(std::move(text), "data", data);
}

}  // namespace dcpcheck
