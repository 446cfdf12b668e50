// dump -o DIR: arrays, and an index of them.
#include <algorithm>
#include <cstring>
#include <optional>

#include "harness/commands/dump.hpp"
#include "harness/core/error.hpp"
#include "harness/exec/launch.hpp"
#include "harness/memory/write_set.hpp"
#include "harness/oracle/code_spans.hpp"
#include "harness/report/folder.hpp"
#include "harness/report/npy.hpp"
#include "harness/report/text.hpp"

namespace dcpcheck {
namespace {

// Low and high of every element of an output, or of a field of a cache's records; row t is that of token t.
struct Bounds {
  std::string low, high, must;
  json::Array also, nan;  // what a pair does not say: [element, low, high], and runs [begin, end) of elements
};

class Folder {
 public:
  Folder(Prepared& prepared, const Kernel& kernel, const RunSettings& settings, const std::string& path, bool expected)
      : prepared_(prepared),
        plan_(prepared.plan),
        kernel_(kernel),
        settings_(settings),
        folder_(path),
        expected_(expected),
        arena_(arena_layout(plan_)),
        memory_(*settings.backend) {}

  LaunchError write(const Context& context, const NamedCase& named) {
    LaunchError failed;
    for (const TensorPlan& tensor : plan_.tensors)
      if (tensor.role == Role::in && !tensor.spec->per_rank) input(tensor, 0, "shared/", nullptr);
    for (std::int64_t rank = 0; rank < plan_.value.geometry.tp; ++rank) {
      context.check_interrupted();
      LaunchError error = write_rank(rank, failed.empty());
      if (failed.empty() && !error.empty()) {
        failed = std::move(error);
        failed.why = "rank " + std::to_string(rank) + ": " + failed.why;
      }
    }
    json::Object index{
        {"schema", "dcpcheck.dump/1"},          {"id", named.id},
        {"document", case_document(named)},     {"kernel", kernel_.name},
        {"backend", settings_.backend->name()}, {"failed", failed.empty() ? json::Value(nullptr) : json::Value(failed.why)},
        {"arrays", std::move(arrays_)}};
    folder_.write("index.json", json::dump(index, 2) + "\n");
    context.check_interrupted();
    folder_.finish();
    return failed;
  }

  std::size_t files() const { return files_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  // `more` goes into the index's entry.
  void array(const std::string& file, const std::string& tensor, const std::string& holds, const json::Value& rank,
             std::string_view dtype, std::string_view type, const std::vector<std::int64_t>& shape, const std::string& elements,
             const json::Object& more = {}) {
    folder_.write(file, npy_file(type, shape, elements));
    json::Object entry{{"file", file}, {"tensor", tensor}, {"holds", holds},
                       {"rank", rank}, {"dtype", dtype},   {"shape", json::numbers(shape)}};
    entry.insert(entry.end(), more.begin(), more.end());
    arrays_.emplace_back(std::move(entry));
    ++files_;
    bytes_ += static_cast<std::int64_t>(elements.size());
  }

  static json::Object layout_of(const TensorPlan& tensor) {
    json::Object out{{"strides", json::numbers(tensor.strides)}, {"offset", tensor.offset}};
    if (tensor.cache.group.empty()) return out;
    json::Array fields;
    for (const FieldPlan& field : tensor.cache.fields)
      fields.emplace_back(json::Object{{"name", field.name},
                                       {"dtype", name_of(field.dtype)},
                                       {"count", field.count},
                                       {"offset", field.offset},
                                       {"scaled_by", field.scaled_by},
                                       {"tile", field.tile}});
    out.emplace_back("kernel_block_size", tensor.cache.kernel_block_size);
    out.emplace_back("planar", tensor.cache.planar);
    out.emplace_back("fields", std::move(fields));
    return out;
  }

  void input(const TensorPlan& tensor, std::int64_t rank, const std::string& at, const json::Value& of_rank) {
    array(at + tensor.name + ".npy", tensor.name, "input", of_rank, name_of(tensor.dtype), npy_type(tensor.dtype),
          dense_shape(tensor), dense_elements(tensor, prepared_.inputs.get(tensor.name, rank).data()), layout_of(tensor));
  }

  LaunchError write_rank(std::int64_t rank, bool run) {
    const std::string at = "rank" + std::to_string(rank) + "/";
    for (const TensorPlan& tensor : plan_.tensors)
      if (tensor.role == Role::in && tensor.spec->per_rank) input(tensor, rank, at, rank);
    RankLaunch launch(plan_, arena_, kernel_, *settings_.backend, memory_, rank, rank, settings_.threads);
    LaunchError failed;
    if (run) {
      const Side side{&prepared_.inputs, {}};
      failed = launch.run(side, side);
    }
    const bool observed = run && failed.empty();
    for (const TensorPlan& tensor : plan_.tensors) {
      if (tensor.role == Role::in) continue;
      const std::string& buffer = tensor.in_place_of.empty() ? tensor.name : tensor.in_place_of;
      const std::byte* const after = observed ? launch.after(Poison::A, buffer).data() : nullptr;
      const auto whole = [&](const std::string& holds, const std::byte* storage) {
        array(at + tensor.name + "." + holds + ".npy", tensor.name, holds, rank, name_of(tensor.dtype), npy_type(tensor.dtype),
              dense_shape(tensor), dense_elements(tensor, storage), layout_of(tensor));
      };
      if (observed && tensor.role == Role::cache) whole("before", launch.before(Poison::A, buffer).data());
      if (observed) whole("observed", after);
      const std::vector<Span> spans = write_set(plan_, tensor, prepared_.inputs, rank);
      if (tensor.role == Role::out && expected_) {
        FieldPlan all;
        all.dtype = tensor.dtype;
        all.count = tensor.columns();
        bounds(tensor, all, spans, 0, rank, at, after);
      }
      for (std::size_t i = 0; tensor.role == Role::cache && i < tensor.cache.fields.size(); ++i) {
        const FieldPlan& field = tensor.cache.fields[i];
        if (observed) records(tensor, field, spans, static_cast<int>(i), rank, at, after);
        if (expected_) bounds(tensor, field, spans, static_cast<int>(i), rank, at, after);
      }
    }
    return failed;
  }

  std::int64_t rows_of(const TensorPlan& tensor) const { return tensor.role == Role::cache ? plan_.tokens : tensor.rows(); }
  // Of the elements of a field of all tokens, or of an output.
  std::vector<std::int64_t> shape_of(const TensorPlan& tensor, const FieldPlan& field) const {
    return tensor.role == Role::cache ? std::vector{plan_.tokens, field.count} : tensor.shape;
  }

  // What a cache holds in the record of each token that has one on the rank; 0 for the others.
  void records(const TensorPlan& tensor, const FieldPlan& field, const std::vector<Span>& spans, int index, std::int64_t rank,
               const std::string& at, const std::byte* after) {
    std::string elements(static_cast<std::size_t>(plan_.tokens * field.bytes()), '\0');
    for (const Span& span : spans)
      if (span.field == index)
        std::memcpy(elements.data() + span.row * field.bytes(), after + span.begin, static_cast<std::size_t>(field.bytes()));
    const std::string name = tensor.name + "." + field.name;
    array(at + name + ".observed.npy", name, "observed", rank, name_of(field.dtype), npy_type(field.dtype),
          shape_of(tensor, field), elements);
  }

  void bounds(const TensorPlan& tensor, const FieldPlan& field, const std::vector<Span>& spans, int index, std::int64_t rank,
              const std::string& at, const std::byte* after) {
    const std::string name = tensor.role == Role::cache ? tensor.name + "." + field.name : tensor.name;
    const FieldPlan* const scales = scale_field(tensor, field);
    // Codes are judged against the scale that was stored, which without a run there is not.
    if (scales != nullptr && after == nullptr) return;
    const std::int64_t size = size_of(field.dtype), width = field.count;
    const auto elements = static_cast<std::size_t>(rows_of(tensor) * width);
    Bounds out{std::string(elements * static_cast<std::size_t>(size), '\0'),
               std::string(elements * static_cast<std::size_t>(size), '\0'),
               std::string(elements, '\0'),
               {},
               {}};
    const Comparison how = comparison_of(plan_.value, field.dtype);
    const Expected& expected = expected_on(prepared_, rank, 0, settings_.threads);
    std::vector<float> scale = scale_of_input(field, scales, rank);
    for (const Span& span : spans) {
      if (span.duty != Duty::must || (tensor.role == Role::cache && span.field != index)) continue;
      const auto found = expected.find(name);
      if (found == expected.end()) throw HarnessError("the reference says nothing of " + name);
      if (scales != nullptr) {
        scale.resize(static_cast<std::size_t>(scales->count));
        std::memcpy(scale.data(), after + tensor.cache.address(span.slot, *scales), scale.size() * sizeof(float));
      }
      const std::int64_t columns = (span.end - span.begin) / size;
      for (std::int64_t column = span.column; column < span.column + columns; ++column) {
        const float divisor =
            scale.empty() ? 1 : scale[static_cast<std::size_t>(column / std::max<std::int64_t>(field.tile, 1))];
        put(admissible_spans(found->second, span.row * found->second.columns + column, how, divisor), span.row * width + column,
            field.dtype, out);
      }
    }
    const std::vector<std::int64_t> shape = shape_of(tensor, field);
    const json::Object more{{"also", out.also}, {"nan", out.nan}};
    array(at + name + ".low.npy", name, "low", rank, name_of(field.dtype), code_type(field.dtype), shape, out.low, more);
    array(at + name + ".high.npy", name, "high", rank, name_of(field.dtype), code_type(field.dtype), shape, out.high);
    array(at + name + ".must.npy", name, "must", rank, "u8", "|u1", shape, out.must);
  }

  static void put(const AdmissibleCodes& codes, std::int64_t element, DType dtype, Bounds& out) {
    const auto size = static_cast<std::size_t>(size_of(dtype)), at = static_cast<std::size_t>(element);
    const std::uint64_t none = nan_code(dtype);
    const CodeSpan first = codes.spans.empty() ? CodeSpan{none, none} : codes.spans.front();
    std::memcpy(out.low.data() + at * size, &first.low, size);
    std::memcpy(out.high.data() + at * size, &first.high, size);
    out.must[at] = 1;
    for (std::size_t i = 1; i < codes.spans.size(); ++i)
      out.also.emplace_back(
          json::Array{element, static_cast<std::int64_t>(codes.spans[i].low), static_cast<std::int64_t>(codes.spans[i].high)});
    if (!codes.nan) return;
    if (!out.nan.empty()) {
      json::Value& end = (*std::get_if<json::Array>(&out.nan.back().data))[1];
      if (*end.get<std::int64_t>() == element) {
        end = element + 1;
        return;
      }
    }
    out.nan.emplace_back(json::Array{element, element + 1});
  }

  static const FieldPlan* scale_field(const TensorPlan& tensor, const FieldPlan& field) {
    for (const FieldPlan& other : tensor.cache.fields)
      if (other.name == field.scaled_by) return &other;
    return nullptr;
  }

  std::vector<float> scale_of_input(const FieldPlan& field, const FieldPlan* in_record, std::int64_t rank) const {
    if (field.scaled_by.empty() || in_record != nullptr) return {};
    const Bytes& storage = prepared_.inputs.get(field.scaled_by, rank);
    float scale = 0;
    std::memcpy(&scale, storage.data() + plan_.tensor(field.scaled_by).offset * size_of(DType::fp32), sizeof scale);
    return std::vector<float>(static_cast<std::size_t>((field.count + field.tile - 1) / std::max<std::int64_t>(field.tile, 1)),
                              scale);
  }

  // Codes of floats as unsigned integers: two that are a step apart differ by 1.
  static std::string_view code_type(DType dtype) { return dtype == DType::fp32 ? "<u4" : npy_type(dtype); }

  Prepared& prepared_;
  const Plan& plan_;
  const Kernel& kernel_;
  const RunSettings& settings_;
  ReportFolder folder_;
  bool expected_;
  ArenaLayout arena_;
  LaunchMemory memory_;
  json::Array arrays_;
  std::size_t files_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace

DumpedFolder dump_folder(const Context& context, const NamedCase& named, const Kernel& kernel, const RunSettings& settings,
                         const std::string& path, bool expected) {
  Prepared prepared = prepare_dump(context, named, settings);
  Folder folder(prepared, kernel, settings, path, expected);
  DumpedFolder dumped;
  dumped.failed = folder.write(context, named);
  dumped.lines =
      text::printable(path) + ": index.json and " + text::count(static_cast<std::int64_t>(folder.files()), "array") + ", " +
      text::count(folder.bytes(), "byte") + "; inputs" +
      (dumped.failed.empty() ? ", and what " + kernel.name + " left on " + text::count(prepared.plan.value.geometry.tp, "rank")
                             : "") +
      (expected ? ", low, high and must of each element" : "") + "\n";
  return dumped;
}

}  // namespace dcpcheck
