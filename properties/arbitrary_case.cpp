#include "properties/arbitrary_case.hpp"

#include <rapidcheck.h>

#include <limits>
#include <ostream>
#include <utility>

#include "properties/dice.hpp"
#include "properties/shrink.hpp"

namespace dcpcheck {
namespace {

struct CaseGen {
  std::shared_ptr<const Generator> generator;

  rc::Shrinkable<Case> operator()(const rc::Random& random, int) const {
    Dice dice(random);
    const std::uint64_t seed = dice.word();
    const std::uint64_t rows = generator->covering_cases();
    const bool row = rows != 0 && dice.one_in(2);
    const std::uint64_t index = row ? dice.word() % rows : rows + dice.word() % (std::uint64_t{1} << 32);
    return rc::shrinkable::shrinkRecur((*generator)(seed, index), [kept = generator](const Case& value) {
      return rc::seq::fromContainer(shrinks(kept->op(), value, kept->options().memory, kept->options().check));
    });
  }
};

}  // namespace

rc::Gen<Case> arbitrary_case(std::shared_ptr<const Generator> generator) { return CaseGen{std::move(generator)}; }

void showValue(const Case& value, std::ostream& out) {
  // Of an op that knows no defaults, every param and option is written.
  Op op;
  op.name = value.op;
  for (const auto& [name, held] : value.params) {
    Param param;
    param.name = name;
    param.value = std::numeric_limits<float>::quiet_NaN();
    op.params.push_back(std::move(param));
  }
  for (const auto& [name, held] : value.contract) op.contract.push_back({name, "", {""}});
  out << json::dump(case_to_json(op, value));
}

}  // namespace dcpcheck
