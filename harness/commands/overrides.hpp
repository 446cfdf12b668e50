// A stored case with some of its fields replaced: `--set dcp.world_size=4`.
#pragma once

#include <string>
#include <vector>

#include "harness/core/case.hpp"

namespace dcpcheck {

// The case that `value` is once each of `overrides`, "<path>=<value>" in their order, is put into it, validated as one that is
// read from a file; `source` names it in errors.
//
// A path is the names and indices that lead to a field of the case, joined by dots: "geometry.dcp.world_size",
// "geometry.batch.0.uncached". "geometry.", "params." and "contract." may be left out where only one of them has the field. An
// index one past a list's end appends to it. A value is JSON; where the field holds text it is that text, without quotes; null
// takes the field out, so that it has its default.
//
// Throws InputError that names the override where its path or its value is none, and that names all of them where what they
// come to together breaks a rule.
Case with_overrides(const Ops& ops, const Case& value, const std::vector<std::string>& overrides, const std::string& source);

}  // namespace dcpcheck
