#include "harness/exec/examine.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/core/parallel.hpp"

namespace dcpcheck {
namespace {

constexpr std::size_t kShown = 5;

// What one part of the spans found under one reason.
struct Tally {
  std::int64_t count = 0;
  std::vector<std::int64_t> rows;  // ascending within a part, one entry a row
  std::vector<Element> first;
};

struct PartFindings {
  std::map<Reason, Tally> tallies;
  std::int64_t must_write = 0, written = 0, compared = 0, tainted = 0, left_out = 0, guarded = 0;
  WorstError worst;
  bool runs_differ = false;
};

std::string hex_byte(std::byte value) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  return {'0', 'x', kDigits[static_cast<unsigned>(value) >> 4], kDigits[static_cast<unsigned>(value) & 15]};
}

class Examiner {
 public:
  Examiner(const Plan& plan, const TensorPlan& tensor, const ArenaBuffer& buffer, const std::vector<Span>& spans,
           const Expected& expected, const Taint& taint, const Inputs& inputs, std::int64_t rank, const Images& images)
      : plan_(plan), tensor_(tensor), buffer_(buffer), spans_(spans), images_(images) {
    if (tensor.role == Role::cache) {
      for (const FieldPlan& field : tensor.cache.fields) prepare_field(field, expected, taint, inputs, rank);
    } else {
      FieldPlan whole;
      whole.dtype = tensor.dtype;
      whole.count = tensor.columns();
      fields_.push_back({whole,
                         &expected_of(expected, tensor.name),
                         tainted_of(taint, tensor.name),
                         comparison_of(plan.value, tensor.dtype),
                         nullptr,
                         {}});
    }
  }

  // Judges spans [begin, end).
  PartFindings spans(std::int64_t begin, std::int64_t end) const {
    PartFindings found;
    std::vector<float> scales;
    for (std::int64_t i = begin; i < end; ++i) judge(spans_[static_cast<std::size_t>(i)], found, scales);
    return found;
  }

  // Looks at what lies between spans [begin, end) and their predecessors: all bytes that must not be written.
  void gaps(std::int64_t begin, std::int64_t end, PartFindings& found) const {
    const auto count = static_cast<std::int64_t>(spans_.size());
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t from = i == 0 ? 0 : spans_[static_cast<std::size_t>(i - 1)].end;
      const std::int64_t to = i == count ? buffer_.bytes : spans_[static_cast<std::size_t>(i)].begin;
      untouched(from, to, Reason::stray_write, found);
    }
  }

  // Pages that neither an image nor the write set has.
  void pages(PartFindings& found) const {
    for (const Touched& touched : images_.touched) {
      if (touched.buffer != buffer_.name) continue;
      const bool outside = touched.again == 0 && (touched.byte < 0 || touched.byte >= buffer_.bytes);
      Tally& tally = found.tallies[outside ? Reason::guard : Reason::stray_write];
      tally.count += std::max<std::int64_t>(touched.bytes, 1);
      if (tally.first.size() >= kShown) continue;
      Element element;
      element.index = {touched.byte};
      element.got = touched.bytes > 0 ? hex_byte(touched.value) : "touched";
      element.admissible = "untouched, as is its page";
      if (touched.again > 0) element.got += ", or a multiple of " + std::to_string(touched.again) + " bytes further on";
      tally.first.push_back(std::move(element));
    }
  }

  void guards(PartFindings& found) const {
    untouched(-buffer_.before, 0, Reason::guard, found);
    untouched(buffer_.bytes, buffer_.bytes + buffer_.after, Reason::guard, found);
  }

 private:
  struct FieldState {
    FieldPlan plan;
    const Admissible* expected;
    const std::vector<bool>* tainted;  // nullptr: no element is
    Comparison how;
    const FieldPlan* scale_field;  // of the same record
    std::vector<float> scale;      // or of an input
  };

  static const Admissible& expected_of(const Expected& expected, const std::string& name) {
    const auto found = expected.find(name);
    if (found == expected.end()) throw HarnessError("the reference says nothing of " + name);
    return found->second;
  }

  static const std::vector<bool>* tainted_of(const Taint& taint, const std::string& name) {
    const auto found = taint.find(name);
    return found == taint.end() ? nullptr : &found->second;
  }

  void prepare_field(const FieldPlan& field, const Expected& expected, const Taint& taint, const Inputs& inputs,
                     std::int64_t rank) {
    const std::string name = tensor_.name + "." + field.name;
    FieldState state{field, nullptr, tainted_of(taint, name), comparison_of(plan_.value, field.dtype), nullptr, {}};
    if (field.count > 0 && !tensor_.slot_mapping.empty()) state.expected = &expected_of(expected, name);
    if (!field.scaled_by.empty()) {
      for (const FieldPlan& other : tensor_.cache.fields) {
        if (other.name == field.scaled_by) state.scale_field = &other;
      }
      if (!state.scale_field) {
        const Bytes& scalar = inputs.get(field.scaled_by, rank);
        float scale = 0;
        std::memcpy(&scale, scalar.data(), sizeof scale);
        state.scale.assign(static_cast<std::size_t>((field.count + field.tile - 1) / std::max<std::int64_t>(field.tile, 1)),
                           scale);
      }
    }
    fields_.push_back(std::move(state));
  }

  const std::byte* at(const std::byte* image, std::int64_t byte) const { return image + buffer_.place(byte); }

  bool unwritten(std::int64_t byte) const {
    return !buffer_.holds_input && *at(images_.after_a, byte) == *at(images_.before_a, byte) &&
           *at(images_.after_b, byte) == *at(images_.before_b, byte);
  }

  void note(PartFindings& found, Reason reason, const Span& span, std::int64_t column, const std::string& admissible,
            float scale) const {
    Tally& tally = found.tallies[reason];
    ++tally.count;
    const std::int64_t token = element_token(tensor_, span, column);
    if (tally.rows.empty() || tally.rows.back() != token) tally.rows.push_back(token);
    if (tally.first.size() >= kShown) return;
    const FieldState& field = fields_[static_cast<std::size_t>(span.field)];
    const std::int64_t size = size_of(field.plan.dtype);
    const std::int64_t byte = span.begin + (column - span.column) * size;
    Element element;
    element.index = element_index(tensor_, span, column);
    element.field = field.plan.name;
    element.got = describe_code(at(images_.after_a, byte), field.plan.dtype);
    if (reason == Reason::unwritten) element.got += ", its poison";
    if (reason == Reason::uninitialised_read || reason == Reason::race) {
      const std::byte* other = reason == Reason::race ? images_.again_a : images_.after_b;
      element.got += ", then " + describe_code(at(other, byte), field.plan.dtype);
    }
    element.admissible =
        admissible.empty() && field.expected
            ? describe_admissible(*field.expected, span.row * field.expected->columns + column, field.how, scale)
            : admissible;
    tally.first.push_back(std::move(element));
  }

  void judge(const Span& span, PartFindings& found, std::vector<float>& scales) const {
    if (span.duty == Duty::may) return;
    const FieldState& field = fields_[static_cast<std::size_t>(span.field)];
    const std::int64_t size = size_of(field.plan.dtype);
    const std::int64_t bytes = span.end - span.begin;
    const std::int64_t columns = bytes / size;
    found.must_write += bytes;
    // Equal after both runs: then no byte holds both its poisons, and nothing depends on what lay there before.
    const bool same =
        std::memcmp(at(images_.after_a, span.begin), at(images_.after_b, span.begin), static_cast<std::size_t>(bytes)) == 0;
    const bool steady = same || buffer_.holds_input;
    // The scales that the kernel stored. One that was not written is its own violation; its codes cannot be judged.
    scales = field.scale;
    std::int64_t first_tile_unwritten = -1;
    if (field.scale_field) {
      const std::int64_t base = tensor_.cache.address(span.slot, *field.scale_field);
      scales.resize(static_cast<std::size_t>(field.scale_field->count));
      std::memcpy(scales.data(), at(images_.after_a, base), scales.size() * sizeof(float));
      for (std::int64_t byte = 0; byte < field.scale_field->bytes(); ++byte) {
        if (unwritten(base + byte)) first_tile_unwritten = byte;
      }
    }
    const auto scale_at = [&](std::int64_t column) {
      return scales.empty() ? 1.0F : scales[static_cast<std::size_t>(column / std::max<std::int64_t>(field.plan.tile, 1))];
    };
    const auto element = [&](std::int64_t column) { return span.row * field.expected->columns + column; };
    const auto tainted = [&](std::int64_t column) {
      return field.tainted != nullptr && (*field.tainted)[static_cast<std::size_t>(element(column))];
    };
    bool some_tainted = false;
    for (std::int64_t column = span.column; field.tainted != nullptr && column < span.column + columns; ++column)
      some_tainted = some_tainted || tainted(column);
    const bool known = field.expected->knows(span.row);
    if (steady && !some_tainted && known && span.column == 0 && columns == field.expected->columns &&
        first_tile_unwritten < 0) {
      found.written += bytes;
      found.compared += columns;
      seen(found, span);
      const RowJudgement row = judge_row(
          *field.expected, span.row, at(images_.after_a, span.begin), field.how, scales, field.plan.tile,
          [&](std::int64_t column, double) { note(found, Reason::inadmissible, span, column, "", scale_at(column)); });
      if (row.column >= 0 && row.worst > found.worst.fraction) worst(found, span, row.column, row.worst);
      return;
    }
    if (steady && !some_tainted && !known) {
      found.written += bytes;
      found.left_out += columns;
      return;
    }
    bool nothing_written = some_tainted;
    for (std::int64_t byte = span.begin; nothing_written && byte < span.end; ++byte) nothing_written = unwritten(byte);
    for (std::int64_t column = span.column; column < span.column + columns; ++column) {
      const std::int64_t byte = span.begin + (column - span.column) * size;
      std::int64_t missing = 0;
      for (std::int64_t i = 0; i < size; ++i) missing += unwritten(byte + i) ? 1 : 0;
      // What differs between the runs by right may hold a poison's byte in each by chance; a whole row of them does not.
      if (missing > 0 && tainted(column) && !nothing_written) missing = 0;
      found.written += size - missing;
      if (missing > 0) {
        note(found, Reason::unwritten, span, column, "written", 1);
        continue;
      }
      if (tainted(column)) {
        ++(known ? found.tainted : found.left_out);
        continue;
      }
      if (!steady && std::memcmp(at(images_.after_a, byte), at(images_.after_b, byte), static_cast<std::size_t>(size)) != 0) {
        if (!images_.alike && !field.expected->exact && known && first_tile_unwritten < 0) {
          const float other = scale_in(images_.after_b, span, field, column);
          if (admitted(field, element(column), at(images_.after_a, byte), scale_at(column)) &&
              admitted(field, element(column), at(images_.after_b, byte), other)) {
            ++found.compared;
            seen(found, span);
            continue;
          }
        }
        found.runs_differ = true;
        const bool race = images_.again_a && std::memcmp(at(images_.after_a, byte), at(images_.again_a, byte),
                                                         static_cast<std::size_t>(size)) != 0;
        note(found, race ? Reason::race : Reason::uninitialised_read, span, column, "the same in every run", 1);
        continue;
      }
      if (!known) {
        ++found.left_out;
        continue;
      }
      if (first_tile_unwritten >= 0) continue;
      ++found.compared;
      seen(found, span);
      const ElementJudgement verdict =
          judge_element(*field.expected, element(column), at(images_.after_a, byte), field.how, scale_at(column));
      if (!verdict.admitted) {
        note(found, Reason::inadmissible, span, column, "", scale_at(column));
      } else if (verdict.fraction > found.worst.fraction) {
        worst(found, span, column, verdict.fraction);
      }
    }
  }

  static bool admitted(const FieldState& field, std::int64_t element, const std::byte* code, float scale) {
    return judge_element(*field.expected, element, code, field.how, scale).admitted;
  }

  // The scale of an element as `image` has it: of its record, or of an input.
  float scale_in(const std::byte* image, const Span& span, const FieldState& field, std::int64_t column) const {
    const auto tile = static_cast<std::size_t>(column / std::max<std::int64_t>(field.plan.tile, 1));
    if (field.scale_field == nullptr) return field.scale.empty() ? 1.0F : field.scale[tile];
    const std::int64_t base = tensor_.cache.address(span.slot, *field.scale_field);
    float scale = 0;
    std::memcpy(&scale, at(image, base) + tile * sizeof scale, sizeof scale);
    return scale;
  }

  // The first element that was compared stands for all where each was the reference's own nearest code.
  void seen(PartFindings& found, const Span& span) const {
    if (found.worst.buffer.empty()) worst(found, span, span.column, 0);
  }

  void worst(PartFindings& found, const Span& span, std::int64_t column, double fraction) const {
    found.worst.fraction = fraction;
    found.worst.buffer = tensor_.name;
    found.worst.index = element_index(tensor_, span, column);
  }

  void untouched(std::int64_t from, std::int64_t to, Reason reason, PartFindings& found) const {
    if (from < to) buffer_.each_part(from, to, [&](std::int64_t begin, std::int64_t end) { held(begin, end, reason, found); });
  }

  // The same of bytes that lie in one piece in an image.
  void held(std::int64_t from, std::int64_t to, Reason reason, PartFindings& found) const {
    const auto bytes = static_cast<std::size_t>(to - from);
    found.guarded += to - from;
    if (std::memcmp(at(images_.after_a, from), at(images_.before_a, from), bytes) == 0 &&
        std::memcmp(at(images_.after_b, from), at(images_.before_b, from), bytes) == 0) {
      return;
    }
    Tally& tally = found.tallies[reason];
    for (std::int64_t byte = from; byte < to; ++byte) {
      const bool in_a = *at(images_.after_a, byte) != *at(images_.before_a, byte);
      if (!in_a && *at(images_.after_b, byte) == *at(images_.before_b, byte)) continue;
      ++tally.count;
      if (tally.first.size() >= kShown) continue;
      const std::byte* after = in_a ? images_.after_a : images_.after_b;
      const std::byte* before = in_a ? images_.before_a : images_.before_b;
      Element element;
      element.index = {byte};
      element.got = hex_byte(*at(after, byte));
      element.admissible = "untouched " + hex_byte(*at(before, byte));
      tally.first.push_back(std::move(element));
    }
  }

  const Plan& plan_;
  const TensorPlan& tensor_;
  const ArenaBuffer& buffer_;
  const std::vector<Span>& spans_;
  const Images& images_;
  std::vector<FieldState> fields_;
};

// Whether a row of the buffer, or a record of the cache, is one of the launch's tokens.
bool rows_are_tokens(const TensorPlan& tensor) {
  return tensor.role == Role::cache || tensor.spec->rows == Rows::live || tensor.spec->rows == Rows::slots;
}

void merge(PartFindings&& part, PartFindings& whole) {
  for (auto& [reason, tally] : part.tallies) {
    Tally& into = whole.tallies[reason];
    into.count += tally.count;
    into.rows.insert(into.rows.end(), tally.rows.begin(), tally.rows.end());
    for (Element& element : tally.first) {
      if (into.first.size() < kShown) into.first.push_back(std::move(element));
    }
  }
  whole.must_write += part.must_write;
  whole.written += part.written;
  whole.compared += part.compared;
  whole.tainted += part.tainted;
  whole.left_out += part.left_out;
  whole.guarded += part.guarded;
  whole.runs_differ = whole.runs_differ || part.runs_differ;
  if (whole.worst.buffer.empty() || part.worst.fraction > whole.worst.fraction) whole.worst = part.worst;
}

}  // namespace

std::vector<std::int64_t> element_index(const TensorPlan& tensor, const Span& span, std::int64_t column) {
  if (tensor.role == Role::cache)
    return {span.slot / tensor.cache.kernel_block_size, span.slot % tensor.cache.kernel_block_size, column};
  if (tensor.shape.size() == 1) return {span.row};
  std::vector<std::int64_t> index(tensor.shape.size());
  index[0] = span.row;
  for (std::size_t axis = tensor.shape.size(); axis-- > 1;) {
    index[axis] = column % tensor.shape[axis];
    column /= tensor.shape[axis];
  }
  return index;
}

std::int64_t element_token(const TensorPlan& tensor, const Span& span, std::int64_t column) {
  return tensor.role == Role::out && tensor.spec->rows == Rows::slots ? column : span.row;
}

Comparison comparison_of(const Case& value, DType dtype) {
  const auto is = [&](const char* option, const char* choice) {
    const auto found = value.contract.find(option);
    return found != value.contract.end() && found->second == choice;
  };
  Comparison how;
  how.dtype = dtype;
  how.e4m3.saturate = !is("e4m3_overflow", "nan");
  how.e4m3.clamp_nan = is("nan", "clamp");
  how.full_division = is("division", "full");
  return how;
}

BufferFindings examine(const Plan& plan, const TensorPlan& tensor, const ArenaLayout& arena, const std::vector<Span>& spans,
                       const Expected& expected, const Taint& taint, const Inputs& inputs, std::int64_t rank,
                       const Images& images, int threads) {
  const ArenaBuffer& buffer = arena.buffer(tensor.in_place_of.empty() ? tensor.name : tensor.in_place_of);
  const Examiner examiner(plan, tensor, buffer, spans, expected, taint, inputs, rank, images);
  // Parts are joined in order, so that what is reported does not depend on the number of threads.
  const auto count = static_cast<std::int64_t>(spans.size());
  std::map<std::int64_t, PartFindings> parts;
  std::mutex guard;
  parallel_parts(count + 1, threads, 64, [&](std::int64_t begin, std::int64_t end) {
    PartFindings found = examiner.spans(begin, std::min(end, count));
    examiner.gaps(begin, end, found);
    const std::scoped_lock lock(guard);
    parts.emplace(begin, std::move(found));
  });
  PartFindings whole;
  for (auto& [begin, part] : parts) merge(std::move(part), whole);
  examiner.guards(whole);
  examiner.pages(whole);

  BufferFindings findings;
  findings.must_write = whole.must_write;
  findings.written = whole.written;
  findings.compared = whole.compared;
  findings.tainted = whole.tainted;
  findings.left_out = whole.left_out;
  findings.guarded = whole.guarded;
  findings.runs_differ = whole.runs_differ;
  findings.worst = whole.worst;
  findings.worst.rank = rank;
  for (auto& [reason, tally] : whole.tallies) {
    Violation violation;
    violation.reason = reason;
    violation.buffer = tensor.name;
    violation.rank = rank;
    violation.count = tally.count;
    std::sort(tally.rows.begin(), tally.rows.end());
    tally.rows.erase(std::unique(tally.rows.begin(), tally.rows.end()), tally.rows.end());
    violation.token_rows = static_cast<std::int64_t>(tally.rows.size());
    violation.rows = rows_are_tokens(tensor) ? 0 : tensor.rows();
    violation.tokens = to_ranges(tally.rows);
    violation.first = std::move(tally.first);
    findings.violations.push_back(std::move(violation));
  }
  return findings;
}

std::string digest_buffer(const TensorPlan& tensor, const ArenaBuffer& buffer, const std::vector<Span>& spans,
                          const Images& images, const Restate& restate) {
  Sha256 sha;
  sha.add(tensor.name).add("|");
  const auto add_axis = [&](std::int64_t n) { sha.add(n); };
  if (tensor.role == Role::cache) {
    for (const FieldPlan& field : tensor.cache.fields) sha.add(field.name).add(name_of(field.dtype)).add(field.count);
    add_axis(tensor.cache.blocks);
    add_axis(tensor.cache.kernel_block_size);
  } else {
    sha.add(name_of(tensor.dtype));
    for (const std::int64_t n : tensor.shape) add_axis(n);
  }
  Bytes written;
  for (const Span& span : spans) {
    if (span.duty != Duty::must) continue;
    const auto bytes = static_cast<std::size_t>(span.end - span.begin);
    const std::int64_t place = buffer.place(span.begin);
    const std::byte* a = images.after_a + place;
    const std::byte* b = images.after_b + place;
    const DType dtype =
        tensor.role == Role::cache ? tensor.cache.fields[static_cast<std::size_t>(span.field)].dtype : tensor.dtype;
    sha.add(tensor.role == Role::cache ? span.slot : span.row)
        .add(std::int64_t{span.field})
        .add(span.column)
        .add(span.end - span.begin);
    written.assign(a, a + bytes);
    if (buffer.holds_input || std::memcmp(a, b, bytes) == 0) {
      const std::string mark = restate ? restate(span, written) : "";
      sha.add(mark.empty() ? "whole" : mark);
    } else {
      const std::byte* before_a = images.before_a + place;
      const std::byte* before_b = images.before_b + place;
      Bytes map(bytes);
      std::size_t kept = 0;
      for (std::size_t i = 0; i < bytes; ++i) {
        const bool unwritten = a[i] == before_a[i] && b[i] == before_b[i];
        map[i] = std::byte{!unwritten};
        if (!unwritten) written[kept++] = a[i];
      }
      sha.add("parts").add(map);
      written.resize(kept);
    }
    // Elements that were written in part are no elements; what is left of them is kept as it is.
    if (written.size() == bytes) canonicalise_nans(written, dtype);
    sha.add(written);
  }
  return sha.hex();
}

}  // namespace dcpcheck
