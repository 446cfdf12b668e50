// Cases as RapidCheck draws them, for laws.
#pragma once

#include <rapidcheck/Gen.h>

#include <iosfwd>
#include <memory>

#include "properties/generators.hpp"

namespace dcpcheck {

// Valid cases of the generator's op, half of them rows of its covering array, at any size alike; they shrink by shrinks().
rc::Gen<Case> arbitrary_case(std::shared_ptr<const Generator> generator);

// What RapidCheck prints of a counterexample: the value of "case" in a case file.
void showValue(const Case& value, std::ostream& out);

}  // namespace dcpcheck
