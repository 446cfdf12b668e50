// A hand-made report with something of everything, for the tests of all formats.
#pragma once

#include "harness/report/report.hpp"

namespace dcpcheck {

// A digest of 64 hex digits that starts with `start`.
inline std::string sample_digest(const std::string& start) { return start + std::string(64 - start.size(), '0'); }

inline Result sample_result(const std::string& name, const std::string& fault, std::int64_t world_size) {
  Result result;
  result.case_reference = "repro:" + name;
  result.id = "0123456789abcdef";
  result.name = name;
  result.op = "fused_norm_rope";
  result.kernel = "builtin:fused_norm_rope" + (fault.empty() ? "" : "@" + fault);
  result.fault = fault;
  result.contract = {{"division", "rn"}, {"tile_scale", "fp32_div"}};
  result.backend = "host";
  result.world_size = world_size;
  result.token_rows = 512;
  result.as_expected = true;
  result.verdict.status = Status::pass;
  result.verdict.compared = 1000;
  result.verdict.must_write = result.verdict.written = 2000;
  result.verdict.guarded = 3000;
  result.verdict.worst = {0.4375, "mla_cache", 1, {3, 17, 5}};
  result.inputs_digest = sample_digest("1111aaaa");
  result.all_digest = sample_digest("2222bbbb");
  result.output_digests = {{"rank0/kv_c_out", sample_digest("3333cccc")}, {"rank1/kv_c_out", sample_digest("3333cccc")}};
  result.seconds = 0.25;
  result.replay = "dcpcheck run --backend host --kernel " + result.kernel + " --seed 00000000000d67b3 repro:" + name;
  return result;
}

// A run of the pipeline over two requests, which judged a sample of its rows.
inline Result sample_tokens(const std::string& name, const std::string& fault, std::int64_t world_size) {
  Result result = sample_result(name, fault, world_size);
  result.op = "generate";
  result.output_digests = {{"rank0/dense_prefill.out", sample_digest("4444dddd")},
                           {"rank0/fused_norm_rope.kv_c_out", sample_digest("3333cccc")}};
  result.verdict.left_out = 4096;
  Tokens tokens;
  tokens.ids = tokens.poison_b_ids = {{44, 9, 130, 7}, {200, 0, 12, 12}};
  tokens.digest = tokens.poison_b_digest = sample_digest("3151ddcc");
  tokens.steps = {{"prefill.0", true, 1.5, 0.0625},
                  {"decode.0", true, 2, 0.0625},
                  {"decode.1", true, 0.75, 0.125},
                  {"decode.2", true, 3, 0.125}};
  result.tokens = tokens;
  return result;
}

// The same with K rows that nobody wrote, in the prefill and from there on in each step.
inline Result sample_broken_tokens(const std::string& name) {
  Result result = sample_tokens(name, "k_gated", 4);
  result.expected = {Status::fail, {{"unwritten", "uninitialised-read"}}, {{"kv_c_out", "k_pe_out", "tokens"}}};
  result.verdict.status = Status::fail;
  result.verdict.reason = Reason::unwritten;
  result.verdict.written = 1250;
  result.verdict.tainted = 12345;
  result.verdict.left_out = 1024;
  for (const std::string stage : {"prefill.0", "decode.0", "decode.1", "decode.2"}) {
    const bool prefill = stage == "prefill.0";
    for (std::int64_t rank = prefill ? 0 : 1; rank < 4; ++rank) {
      Violation violation{Reason::unwritten, stage, "fused_norm_rope", "kv_c_out", rank, {{0, 0}}, 1, 1024, {}};
      if (prefill) {
        violation.tokens = {{rank == 0, 3 - (rank == 3)}, {5, 7}, {9, 11}, {13, 15}};
        violation.token_rows = 384;
        violation.count = 384 * 1024;
      }
      result.verdict.violations.push_back(violation);
      violation.buffer = "k_pe_out";
      violation.count /= 8;
      result.verdict.violations.push_back(violation);
    }
  }
  result.verdict.violations.push_back({Reason::uninitialised_read, "", "", "tokens", 0, {}, 0, 7, {{{0, 0}, "", "17", "98"}}});
  result.tokens->ids = {{17, 203, 5, 5}, {200, 3, 12, 4}};
  result.tokens->poison_b_ids = {{98, 4, 5, 6}, {200, -1, 3, 8}};
  result.tokens->digest = sample_digest("64924199");
  result.tokens->poison_b_digest = sample_digest("0b1e77d2");
  for (TokenStep& step : result.tokens->steps) step.known = false;
  result.cause = "another sentence that the commands add";
  return result;
}

inline Relation sample_token_relation(const std::string& scenario, const Result& dcp1, const Result& dcp4) {
  Relation relation;
  relation.scenario = scenario;
  relation.quantity = "tokens";
  relation.fault = dcp4.fault;
  relation.backend = "host";
  relation.dcp1 = dcp1.tokens->digest;
  relation.dcp4 = {dcp4.tokens->digest};
  relation.dcp1_ids = dcp1.tokens->ids;
  relation.dcp4_ids = dcp4.tokens->ids;
  relation.equal = relation.dcp1_ids == relation.dcp4_ids;
  relation.expected_equal = dcp4.expected.status == Status::pass;
  return relation;
}

inline Report sample_report() {
  Report report;
  report.paired = true;
  report.tool = {"0.1.0", "0123456789ab"};
  report.machine = {"Debian GNU/Linux 12", "A CPU", 2, "g++ 12.2.0", {}, {}, {}};
  report.command = {"dcpcheck", "repro", "--json", "-"};
  report.results = {sample_result("512-dcp1", "", 1), sample_result("512-dcp4", "", 4),
                    sample_result("512-dcp1", "k_gated", 1)};

  Result gated = sample_result("512-dcp4", "k_gated", 4);
  gated.expected = {Status::fail, {{"unwritten"}}, {{"kv_c_out", "k_pe_out"}}};
  gated.verdict.status = Status::fail;
  gated.verdict.reason = Reason::unwritten;
  gated.verdict.written = 1250;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    Violation violation{
        Reason::unwritten, "", "", "kv_c_out", rank, {}, 384, 384 * 1024, {{{rank == 0, 0}, "", "0x7F81", "written"}}};
    for (std::int64_t row = 0; row < 512; row += 4) {
      if (rank != 0) violation.tokens.emplace_back(row, row + rank - 1);
      if (rank != 3) violation.tokens.emplace_back(row + rank + 1, row + 3);
    }
    violation.tokens.resize(4);  // the sample need not have all of them
    gated.verdict.violations.push_back(violation);
    violation.buffer = "k_pe_out";
    violation.count = 384 * 128;
    gated.verdict.violations.push_back(violation);
  }
  gated.cause = "a sentence that the commands add";
  report.results.push_back(gated);

  Result stray = sample_result("512-dcp4", "cache_unguarded", 4);
  stray.verdict.status = Status::fail;
  stray.verdict.reason = Reason::guard;
  stray.as_expected = false;
  stray.verdict.violations = {{Reason::guard, "", "", "mla_cache", 1, {}, 0, 656, {{{-656}, "", "0x3C", "untouched"}}},
                              {Reason::inadmissible,
                               "",
                               "",
                               "mla_cache",
                               2,
                               {{4, 5}, {9, 9}},
                               3,
                               17,
                               {{{0, 4, 2}, "k_pe", "0x3F81 (1.0078)", "0x3F80 (1)"}}}};
  report.results.push_back(stray);

  const Result alone = sample_tokens("tokens-512-dcp1", "", 1), split = sample_tokens("tokens-512-dcp4", "", 4);
  const Result gated_alone = sample_tokens("tokens-512-dcp1", "k_gated", 1);
  const Result gated_split = sample_broken_tokens("tokens-512-dcp4");
  report.results.insert(report.results.end(), {alone, split, gated_alone, gated_split});

  Relation same;
  same.scenario = "512";
  same.quantity = "k_rows";
  same.backend = "host";
  same.dcp1 = sample_digest("aaaa1111");
  same.dcp4 = std::vector<std::string>(4, same.dcp1);
  same.equal = true;
  Relation other = same;
  other.fault = "k_gated";
  other.dcp4 = {sample_digest("b0"), sample_digest("b1"), sample_digest("b2"), sample_digest("b3")};
  other.equal = other.expected_equal = false;
  report.relations = {same, other, sample_token_relation("tokens-512", alone, split),
                      sample_token_relation("tokens-512", gated_alone, gated_split)};
  return report;
}

// The same with a list of cases that are no pairs, and a seed.
inline Report sample_list() {
  Report report = sample_report();
  report.seed = 0xd67b3;
  Result refused = sample_result("fnr-grid-past-the-limit", "", 1);
  refused.case_reference = "corpora/edge/fnr-grid-past-the-limit.json";
  refused.verdict = {};
  refused.verdict.status = Status::fail;
  refused.verdict.reason = Reason::launch_refused;
  refused.verdict.detail = "the grid has 65536 blocks on y, and CUDA takes 65535";
  refused.as_expected = false;
  Result skipped = sample_result("fnr-other", "", 1);
  skipped.verdict = {};
  skipped.verdict.status = Status::skipped;
  skipped.verdict.detail = "builtin:compute_slot_mapping is a kernel of compute_slot_mapping";
  skipped.as_expected = false;
  skipped.kernel = "builtin:compute_slot_mapping";
  skipped.inputs_digest.clear();
  skipped.all_digest.clear();
  skipped.output_digests.clear();
  report.results = {report.results[3], refused, skipped};
  report.relations.clear();
  report.paired = false;
  return report;
}

}  // namespace dcpcheck
