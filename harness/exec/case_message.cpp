#include "harness/exec/case_message.hpp"

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

// Both directions are one list of fields below: an archive is called with each, and writes it or fills it.

class Out {
 public:
  static constexpr bool writes = true;
  explicit Out(MessageWriter& message) : message_(message) {}
  std::int64_t number(std::int64_t value) {
    message_.number(value);
    return value;
  }
  std::string text(const std::string& value) {
    message_.text(value);
    return value;
  }

 private:
  MessageWriter& message_;
};

class In {
 public:
  static constexpr bool writes = false;
  explicit In(MessageReader& message) : message_(message) {}
  std::int64_t number(std::int64_t) { return message_.number(); }
  std::string text(const std::string&) { return message_.text(); }

 private:
  MessageReader& message_;
};

template <class Archive>
void each(Archive& archive, std::int64_t& value) {
  value = archive.number(value);
}
template <class Archive>
void each(Archive& archive, std::uint64_t& value) {
  value = static_cast<std::uint64_t>(archive.number(static_cast<std::int64_t>(value)));
}
template <class Archive>
void each(Archive& archive, bool& value) {
  value = archive.number(value ? 1 : 0) != 0;
}
template <class Archive>
void each(Archive& archive, float& value) {
  value = std::bit_cast<float>(static_cast<std::uint32_t>(archive.number(std::bit_cast<std::uint32_t>(value))));
}
template <class Archive>
void each(Archive& archive, std::string& value) {
  value = archive.text(value);
}
template <class Archive>
void each(Archive& archive, Request& value) {
  each(archive, value.cached);
  each(archive, value.uncached);
}
template <class Archive>
void each(Archive& archive, RowLayout& value) {
  each(archive, value.stride);
  each(archive, value.offset);
}
template <std::size_t I = 0, class Archive>
void each(Archive& archive, ParamValue& value, std::size_t index) {
  if constexpr (I < std::variant_size_v<ParamValue>) {
    if (I != index) return each<I + 1>(archive, value, index);
    if constexpr (!Archive::writes) value.emplace<I>();
    each(archive, std::get<I>(value));
  } else {
    throw HarnessError("a param of a message has no type that is known");
  }
}
template <class Archive>
void each(Archive& archive, ParamValue& value) {
  each(archive, value, static_cast<std::size_t>(archive.number(static_cast<std::int64_t>(value.index()))));
}
template <class Archive, class Element>
void each(Archive& archive, std::vector<Element>& value) {
  const std::int64_t count = archive.number(static_cast<std::int64_t>(value.size()));
  if constexpr (!Archive::writes) {
    value.clear();
    for (std::int64_t i = 0; i < count; ++i) each(archive, value.emplace_back());
  } else {
    for (Element& element : value) each(archive, element);
  }
}
template <class Archive>
void each(Archive& archive, CacheGroup& value) {
  each(archive, value.enabled);
  each(archive, value.block_size);
  each(archive, value.kernel_block_size);
  each(archive, value.spare_blocks);
  each(archive, value.block_stride_padding);
  each(archive, value.sparse);
  each(archive, value.slot_mapping);
  each(archive, value.table_columns);
  each(archive, value.slots);
}
template <class Archive, class Element>
void each(Archive& archive, std::map<std::string, Element>& value) {
  const std::int64_t count = archive.number(static_cast<std::int64_t>(value.size()));
  if constexpr (!Archive::writes) {
    value.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      std::string name;
      each(archive, name);
      each(archive, value[std::move(name)]);
    }
  } else {
    for (auto& [name, element] : value) {
      static_cast<void>(archive.text(name));
      each(archive, element);
    }
  }
}
template <class Archive>
void each(Archive& archive, Case& value) {
  each(archive, value.op);
  each(archive, value.seed);
  Geometry& geometry = value.geometry;
  each(archive, geometry.batch);
  each(archive, geometry.padding.tokens);
  each(archive, geometry.padding.slots);
  each(archive, geometry.padding.positions);
  each(archive, geometry.padding.values);
  each(archive, geometry.max_batched_tokens);
  each(archive, geometry.tp);
  each(archive, geometry.world_size);
  each(archive, geometry.interleave);
  each(archive, geometry.caches);
  each(archive, geometry.chunk.start);
  each(archive, geometry.chunk.tokens);
  each(archive, value.params);
  each(archive, value.contract);
  each(archive, value.layout);
  each(archive, value.values);
  each(archive, value.graph);
}

}  // namespace

void write_case(MessageWriter& message, const Case& value) {
  Case copy = value;
  Out out(message);
  each(out, copy);
}

Case read_case(MessageReader& message) {
  Case value;
  In in(message);
  each(in, value);
  return value;
}

}  // namespace dcpcheck
