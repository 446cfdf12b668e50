// Relations between the runs of a scenario under DCP1 and under DCP4.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/suite.hpp"
#include "harness/report/report.hpp"

namespace dcpcheck {

// The buffers whose rows make "k_rows".
std::vector<std::string> k_rows_buffers();

// "k_rows": the rows of k_rows_buffers() that dense prefill would read, as they were after run A, whatever wrote
// them. Under DCP4 each rank's must be those of DCP1, unless the DCP4 case's file expects the kernel to break one.
std::vector<Relation> k_rows_relations(const std::vector<Consumed>& runs, const std::string& backend);

// "tokens": what the run of a scenario puts out under DCP1 and under DCP4, on the same kernel and backend, in run A. They
// must be the same, unless the DCP4 result is expected to fail in "tokens"; and they may differ from a step on whose
// choice was narrower, in either run, than what right kernels may differ by (Relation::inconclusive_at).
std::vector<Relation> token_relations(const std::vector<Result>& results);

}  // namespace dcpcheck
