// Violations as sentences: which buffers, which ranks, how many rows, why.
#pragma once

#include <string>
#include <vector>

#include "harness/report/report.hpp"

namespace dcpcheck {

// One sentence for each kind of violation, equal ones of several ranks and buffers told together, as in "kv_c_out and
// k_pe_out: unwritten on ranks 0-3, 384 of 512 token rows each (rank 0: tokens 1-3, 5-7, …)". Of a pipeline also where and
// in whose launch, in full for the first stage that has it, and the tokens where they depend on the poison. Then what was
// not judged, if anything.
std::vector<std::string> describe_violations(const Result& result);

}  // namespace dcpcheck
