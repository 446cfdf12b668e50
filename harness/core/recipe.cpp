#include "harness/core/recipe.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "harness/core/error.hpp"
#include "harness/core/inputs.hpp"

namespace dcpcheck {
namespace {

enum class Argument : std::uint8_t { none, positive, finite, count, digest, name, tensor, field, chunk_field };

struct Known {
  std::string_view name;
  Recipe::Kind kind;
  Argument argument = Argument::none;
};

using Kind = Recipe::Kind;
constexpr std::array<Known, 29> known = {{
    {"normal", Kind::normal, Argument::positive},
    {"ladder", Kind::ladder},
    {"large_mean", Kind::large_mean},
    {"signs", Kind::signs},
    {"zero", Kind::zero},
    {"constant", Kind::constant, Argument::finite},
    {"critical", Kind::critical},
    {"saturating", Kind::saturating},
    {"tiny", Kind::tiny},
    {"mixed", Kind::mixed},
    {"special", Kind::special},
    {"nan", Kind::nan},
    {"weights", Kind::weights},
    {"around", Kind::around, Argument::positive},
    {"unit_circle", Kind::unit_circle},
    {"lse", Kind::lse},
    {"empty", Kind::empty},
    {"sparse", Kind::sparse, Argument::count},
    {"below", Kind::below, Argument::count},
    {"stored", Kind::stored, Argument::digest},
    {"gathered", Kind::gathered},
    {"partials", Kind::partials, Argument::tensor},
    {"positions", Kind::positions},
    {"query_start_loc", Kind::query_start_loc},
    {"idx_mapping", Kind::idx_mapping},
    {"block_table", Kind::block_table},
    {"slots", Kind::slots, Argument::name},
    {"group", Kind::group, Argument::field},
    {"chunk", Kind::chunk, Argument::chunk_field},
}};

constexpr std::array<std::string_view, 4> group_fields = {"block_size", "kernel_block_size", "sharded", "enabled"};

constexpr std::array<std::string_view, 3> chunk_fields = {"local_starts", "local_offsets", "context_offsets"};

std::string quoted(std::string_view text) { return std::string(1, '\'').append(text).append("'"); }

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw InputError(quoted(text) + " is no recipe: " + why);
}

// All of `argument` as a finite number in fp32's range.
double number(std::string_view text, std::string_view argument) {
  double value = 0;
  const char* const end = argument.data() + argument.size();
  const auto [stop, error] = std::from_chars(argument.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) ||
      std::fabs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
    refuse(text, quoted(argument) + " is no finite number that fp32 can hold");
  }
  return value;
}

}  // namespace

Recipe parse_recipe(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const bool given = colon != std::string_view::npos;
  const std::string_view argument = given ? text.substr(colon + 1) : std::string_view();
  std::string names;
  for (const Known& entry : known) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
    if (entry.name != name) continue;
    Recipe recipe;
    recipe.kind = entry.kind;
    if (given != (entry.argument != Argument::none)) {
      refuse(text, std::string(name) + (given ? " takes nothing after it" : " needs ':' and a value after it"));
    }
    switch (entry.argument) {
      case Argument::none: break;
      case Argument::positive:
        recipe.number = number(text, argument);
        if (!(recipe.number > 0)) refuse(text, quoted(argument) + " is not above 0");
        break;
      case Argument::finite: recipe.number = number(text, argument); break;
      case Argument::count:
        recipe.number = number(text, argument);
        if (!(recipe.number >= 1 && recipe.number <= 0x1p24) || recipe.number != std::trunc(recipe.number)) {
          refuse(text, quoted(argument) + " is no whole number from 1 to 2^24");
        }
        break;
      case Argument::digest:
        if (argument.size() != 64 || argument.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
          refuse(text, "the SHA-256 of what is stored is needed, in 64 lower-case hex digits");
        }
        recipe.argument = argument;
        break;
      case Argument::name:
        if (argument.empty()) refuse(text, "it names no cache");
        recipe.argument = argument;
        break;
      case Argument::tensor:
        if (argument.empty()) refuse(text, "it names no tensor");
        recipe.argument = argument;
        break;
      case Argument::field:
        if (std::find(group_fields.begin(), group_fields.end(), argument) == group_fields.end()) {
          refuse(text, "a group's fields are block_size, kernel_block_size, sharded, enabled");
        }
        recipe.argument = argument;
        break;
      case Argument::chunk_field:
        if (std::find(chunk_fields.begin(), chunk_fields.end(), argument) == chunk_fields.end()) {
          refuse(text, "a chunk's fields are local_starts, local_offsets, context_offsets");
        }
        recipe.argument = argument;
        break;
    }
    return recipe;
  }
  refuse(text, "known are " + names);
}

void check_recipe(std::string_view recipe) { parse_recipe(recipe); }

}  // namespace dcpcheck
