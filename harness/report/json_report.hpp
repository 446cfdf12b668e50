// The report as a JSON document, "dcpcheck.report/1" (reports/schema/report.schema.json).
#pragma once

#include "harness/core/json.hpp"
#include "harness/report/report.hpp"

namespace dcpcheck {

json::Value report_to_json(const Report& report);

// The tool and the machine alone, as they stand in a report and in `doctor`.
json::Value to_json(const ToolInfo& tool);
json::Value to_json(const Machine& machine);

}  // namespace dcpcheck
