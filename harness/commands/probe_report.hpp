// What probing a kernel found, for a person and as JSON (dcpcheck kernels --probe).
#pragma once

#include <string>

#include "harness/core/json.hpp"
#include "properties/probe.hpp"

namespace dcpcheck {

// The declaration that is proposed: {"preset", "contract", "requirements"}, what is empty left out, as a manifest takes it; in
// a ready line `contract` is called `options`.
json::Object proposal_json(const Probe& probe, const Op& op);

json::Object probe_json(const Probe& probe, const Op& op, const Kernel& kernel, const std::string& backend);
std::string probe_in_words(const Probe& probe, const Op& op, const Kernel& kernel, const std::string& backend);

}  // namespace dcpcheck
