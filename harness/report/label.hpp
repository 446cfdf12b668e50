// What formats call a result, a kernel and a relation.
#pragma once

#include <string>
#include <vector>

#include "harness/report/report.hpp"

namespace dcpcheck {

// The case's name; where it has none, what `dcpcheck run` takes for it. Control characters as "\xNN".
std::string case_label(const Result& result);

// "fixed", the fault's name, or of a kernel from elsewhere its file without the folders.
std::string kernel_label(const Result& result);
bool is_from_elsewhere(const Result& result);

// "fail (unwritten), as expected", "pass, expected fail".
std::string outcome_in_words(const Result& result);

// Why a result is what it is, a sentence each: what is wrong, its detail, its cause. Control characters as "\xNN".
std::vector<std::string> reasons_of(const Result& result);

// What is wrong with a relation, or what it says where nothing is.
std::string relation_in_words(const Relation& relation);

}  // namespace dcpcheck
