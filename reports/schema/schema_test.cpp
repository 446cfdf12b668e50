// Holds every document of ours to its schema: the corpora, the ops, manifests, and a report that the program writes here and
// now.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using valijson::adapters::NlohmannJsonAdapter;

const fs::path kSource = DCPCHECK_SOURCE_DIR;

Json load(const fs::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path.string() + " cannot be opened");
  return Json::parse(in);
}

// What is wrong with `document`, a line each; empty where the schema admits it.
std::string errors(const std::string& schema_name, const Json& document) {
  const Json source = load(kSource / "reports/schema" / (schema_name + ".schema.json"));
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(NlohmannJsonAdapter(source), schema);
  valijson::ValidationResults results;
  valijson::Validator validator;
  if (validator.validate(schema, NlohmannJsonAdapter(document), &results)) return "";
  std::string text;
  for (const auto& error : results) {
    for (const std::string& step : error.context) text += step;
    text += ": " + error.description + "\n";
  }
  return text.empty() ? "rejected" : text;
}

// A good document, and an edit of it that no schema should let pass.
struct Edit {
  const char* what;
  std::function<void(Json&)> apply;
};

void expect_rejected(const std::string& schema, const Json& good, const std::vector<Edit>& edits) {
  ASSERT_EQ(errors(schema, good), "");
  for (const Edit& edit : edits) {
    Json bad = good;
    edit.apply(bad);
    EXPECT_NE(bad, good) << edit.what;
    EXPECT_NE(errors(schema, bad), "") << edit.what << " was accepted";
  }
}

TEST(CaseSchema, AdmitsEveryFileOfTheCorpora) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "corpora")) {
    if (entry.path().extension() != ".json" || entry.path().string().find("/golden/") != std::string::npos) continue;
    EXPECT_EQ(errors("case", load(entry.path())), "") << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(CaseSchema, AdmitsTheExamplesInTheReadmeAndEachOpHasOne) {
  std::ifstream in(kSource / "reports/schema/README.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string open = "```jsonc\n";
  std::set<std::string> ops;
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at + 1)) {
    const std::size_t begin = at + open.size();
    const Json example = Json::parse(text.substr(begin, text.find("```", begin) - begin), nullptr, true, true);
    EXPECT_EQ(errors("case", example), "") << example;
    ops.insert(example.at("case").at("op").get<std::string>());
  }
  for (const auto& entry : fs::directory_iterator(kSource / "reference")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".op.json")) continue;
    EXPECT_EQ(ops.count(name.substr(0, name.find('.'))), 1U) << name << " has no example";
  }
}

TEST(CaseSchema, RejectsWhatIsNoCase) {
  const Json good = Json::parse(R"({"schema": "dcpcheck.case/1", "name": "a", "source": "b",
    "expect": {"k_gated": {"status": "fail", "reasons": ["unwritten"], "buffers": ["kv_c_out"]}},
    "case": {"op": "fused_norm_rope", "seed": "00000000000d67b3",
      "geometry": {"batch": [{"cached": 1024, "uncached": 1536}], "padding": {"tokens": 3, "slots": "-block", "values": "nan"}, "tp": 4,
        "dcp": {"world_size": 4, "interleave": 1}, "caches": {"mla": {"block_size": 64, "slot_mapping": "explicit", "slots": [[0, -1]]}}},
      "params": {"q_lora_rank": 2048, "indexer": true, "q_eps": 1e-6, "mla_layout": "bf16"}, "contract": {"tile_scale": "fp32_div"},
      "layout": {"q_c": {"stride": 2624, "offset": 0}}, "values": {"kv_c": "normal:0.03"}, "launch": {"graph": false}}})");
  expect_rejected("case", good,
                  {{"another schema", [](Json& d) { d["schema"] = "dcpcheck.case/2"; }},
                   {"no schema", [](Json& d) { d.erase("schema"); }},
                   {"no case", [](Json& d) { d.erase("case"); }},
                   {"no op", [](Json& d) { d["case"].erase("op"); }},
                   {"an unknown field", [](Json& d) { d["case"]["sed"] = "x"; }},
                   {"a seed that is a number", [](Json& d) { d["case"]["seed"] = 1; }},
                   {"a short seed", [](Json& d) { d["case"]["seed"] = "1"; }},
                   {"a seed in capitals", [](Json& d) { d["case"]["seed"] = "00000000000D67B3"; }},
                   {"negative tokens", [](Json& d) { d["case"]["geometry"]["batch"][0]["cached"] = -1; }},
                   {"half a token", [](Json& d) { d["case"]["geometry"]["batch"][0]["cached"] = 0.5; }},
                   {"an integer over 2^53", [](Json& d) { d["case"]["geometry"]["tp"] = 9007199254740993; }},
                   {"no ranks", [](Json& d) { d["case"]["geometry"]["tp"] = 0; }},
                   {"an unknown slot mapping", [](Json& d) { d["case"]["geometry"]["caches"]["mla"]["slot_mapping"] = "dpc"; }},
                   {"slots without ranks",
                    [](Json& d) {
                      d["case"]["geometry"]["caches"]["mla"]["slots"] = {0, -1};
                    }},
                   {"padding slots as a number", [](Json& d) { d["case"]["geometry"]["padding"]["slots"] = -1; }},
                   {"a param that is a list", [](Json& d) { d["case"]["params"]["indexer"] = Json::array(); }},
                   {"a contract that is a flag", [](Json& d) { d["case"]["contract"]["tile_scale"] = true; }},
                   {"a chunk without bounds", [](Json& d) { d["case"]["geometry"]["chunk"] = 64; }},
                   {"a chunk that ends before it starts",
                    [](Json& d) {
                      d["case"]["geometry"]["chunk"] = {{"tokens", -1}};
                    }},
                   {"an unknown status", [](Json& d) { d["expect"]["k_gated"]["status"] = "bad"; }},
                   {"an expectation without status", [](Json& d) { d["expect"]["k_gated"].erase("status"); }}});
}

TEST(OpSchema, AdmitsEveryOp) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(kSource / "reference")) {
    if (!entry.path().string().ends_with(".op.json")) continue;
    EXPECT_EQ(errors("op", load(entry.path())), "") << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(OpSchema, RejectsWhatIsNoOp) {
  const Json good =
      Json::parse(R"({"schema": "dcpcheck.op/1", "name": "copy", "version": 1, "geometry": ["batch"], "caches": ["kv"],
    "params": {"n": {"type": "integer", "min": 1, "max": 9, "default": 2, "plainest": 1, "prefer": [3]},
      "f": {"type": "flag", "default": true}, "e": {"type": "number", "min": 0, "max": 1, "default": 0.5},
      "c": {"type": "choice", "values": ["a"], "default": "a"}},
    "require": [{"that": "n > 0", "say": "n must be over 0"}], "contract": {"nan": {"values": ["0x7F"]}},
    "presets": {"old": {"doc": "d", "contract": {"nan": ["0x7F"]}, "requirements": [{"that": "n > 0"}]}},
    "tensors": [{"name": "x", "role": "in", "dtype": "'bf16'", "shape": ["T", "n"], "values": "normal:1"},
      {"name": "y", "role": "out", "dtype": "'bf16'", "shape": ["T", "n"], "rows": "live"},
      {"name": "z", "role": "cache", "cache": "kv", "slot_mapping": "x", "records": [
        {"fields": [{"name": "v", "dtype": "e4m3", "count": "n", "scaled_by": "s", "tile": "n"}, {"name": "s", "dtype": "fp32", "count": "1"}]}]},
      {"name": "r", "role": "in", "cache": "kv", "records": [{"fields": [{"name": "v", "dtype": "bf16", "count": "n"}]}]}]})");
  expect_rejected(
      "op", good,
      {{"no version", [](Json& d) { d.erase("version"); }},
       {"version 0", [](Json& d) { d["version"] = 0; }},
       {"an unknown field of geometry", [](Json& d) { d["geometry"] = {"ranks"}; }},
       {"an unknown field", [](Json& d) { d["rules"] = Json::array(); }},
       {"a law named twice",
        [](Json& d) {
          d["laws"] = {"repetition", "repetition"};
        }},
       {"an integer without its range", [](Json& d) { d["params"]["n"].erase("max"); }},
       {"a flag with a number", [](Json& d) { d["params"]["f"]["default"] = 1; }},
       {"a choice of nothing", [](Json& d) { d["params"]["c"]["values"] = Json::array(); }},
       {"an unknown type of param", [](Json& d) { d["params"]["e"]["type"] = "float"; }},
       {"an option of nothing", [](Json& d) { d["contract"]["nan"]["values"] = Json::array(); }},
       {"a preset that follows an option as nothing", [](Json& d) { d["presets"]["old"]["contract"]["nan"] = Json::array(); }},
       {"a preset with an unknown field", [](Json& d) { d["presets"]["old"]["tensors"] = Json::array(); }},
       {"a preset's requirement without a condition", [](Json& d) { d["presets"]["old"]["requirements"][0].erase("that"); }},
       {"a rule without a sentence", [](Json& d) { d["require"][0].erase("say"); }},
       {"an unknown role", [](Json& d) { d["tensors"][0]["role"] = "inout"; }},
       {"an input without values", [](Json& d) { d["tensors"][0].erase("values"); }},
       {"an output without rows", [](Json& d) { d["tensors"][1].erase("rows"); }},
       {"a cache without records", [](Json& d) { d["tensors"][2].erase("records"); }},
       {"a cache to be read with a recipe", [](Json& d) { d["tensors"][3]["values"] = "zero"; }},
       {"a cache to be read without records", [](Json& d) { d["tensors"][3].erase("records"); }},
       {"an unknown dtype", [](Json& d) { d["tensors"][2]["records"][0]["fields"][1]["dtype"] = "fp64"; }},
       {"codes without a tile", [](Json& d) { d["tensors"][2]["records"][0]["fields"][0].erase("tile"); }}});
}

TEST(ManifestSchema, AdmitsEveryExample) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "harness/adapters/examples/cubin")) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_EQ(errors("manifest", load(entry.path())), "") << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(ManifestSchema, RejectsWhatIsNoManifest) {
  const Json good = Json::parse(R"({"schema": "dcpcheck.manifest/1", "op": "copy", "name": "a", "doc": "b",
    "preset": "old", "contract": {"nan": ["0x7F"]}, "tensors": ["x"], "requirements": [{"that": "n > 0", "say": "c"}], "values": {"m": "2 * n", "k": 3},
    "variants": [{"name": "a", "module": "a.cubin", "entry": "f", "when": "m > 1",
      "requires": [{"address": "x", "offset": 4, "divisible_by": 16}, {"value": "n", "divisible_by": 2}, {"value": "n", "equal_to": 1}],
      "grid": ["n", 2, 1], "block": [128], "cluster": [2], "shared_bytes": "4 * n", "cooperative": false, "programmatic_stream_serialization": true,
      "parameters": [{"bind": "address", "tensor": "x", "offset": 8, "align": 4, "optional": true}, {"bind": "stride", "tensor": "x", "axis": 0, "type": "i32"},
        {"bind": "shape", "tensor": "x", "axis": 0, "type": "i64", "optional": true}, {"name": "v", "bind": "value", "value": "n", "type": "i8"},
        {"bind": "number", "param": "eps", "type": "f32"}, {"bind": "constant", "value": 0.5, "type": "f64"}, {"bind": "null"},
        {"bind": "scratch", "bytes": "n", "zeroed": true}, {"bind": "array", "each": {"bind": "address", "tensor": "t"}},
        {"bind": "struct", "fields": [{"bind": "null"}]}]}]})");
  const auto parameter = [](Json& d, int i) -> Json& { return d["variants"][0]["parameters"][static_cast<std::size_t>(i)]; };
  expect_rejected("manifest", good,
                  {{"another schema", [](Json& d) { d["schema"] = "dcpcheck.manifest/2"; }},
                   {"no op", [](Json& d) { d.erase("op"); }},
                   {"an unknown field", [](Json& d) { d["kernel"] = "f"; }},
                   {"no variants", [](Json& d) { d["variants"] = Json::array(); }},
                   {"an option of nothing", [](Json& d) { d["contract"]["nan"] = Json::array(); }},
                   {"two presets",
                    [](Json& d) {
                      d["preset"] = {"old", "new"};
                    }},
                   {"a requirement without a condition", [](Json& d) { d["requirements"][0].erase("that"); }},
                   {"a value that is a flag", [](Json& d) { d["values"]["m"] = true; }},
                   {"half a value", [](Json& d) { d["values"]["m"] = 0.5; }},
                   {"a variant without a grid", [](Json& d) { d["variants"][0].erase("grid"); }},
                   {"a grid of four axes",
                    [](Json& d) {
                      d["variants"][0]["grid"] = {1, 1, 1, 1};
                    }},
                   {"a cooperative of 1", [](Json& d) { d["variants"][0]["cooperative"] = 1; }},
                   {"an unknown field of a variant", [](Json& d) { d["variants"][0]["warps"] = 4; }},
                   {"an address that equals", [](Json& d) { d["variants"][0]["requires"][0]["equal_to"] = 0; }},
                   {"both an address and a value", [](Json& d) { d["variants"][0]["requires"][0]["value"] = "n"; }},
                   {"divisible by 0", [](Json& d) { d["variants"][0]["requires"][1]["divisible_by"] = 0; }},
                   {"nothing required", [](Json& d) { d["variants"][0]["requires"][2].erase("equal_to"); }},
                   {"an unknown binding", [&](Json& d) { parameter(d, 0)["bind"] = "pointer"; }},
                   {"an address of nothing", [&](Json& d) { parameter(d, 0).erase("tensor"); }},
                   {"an unknown field of a binding", [&](Json& d) { parameter(d, 0)["type"] = "i8"; }},
                   {"a stride without its axis", [&](Json& d) { parameter(d, 1).erase("axis"); }},
                   {"a shape as fp16", [&](Json& d) { parameter(d, 2)["type"] = "f16"; }},
                   {"a value without a type", [&](Json& d) { parameter(d, 3).erase("type"); }},
                   {"a number as i32", [&](Json& d) { parameter(d, 4)["type"] = "i32"; }},
                   {"a constant in words", [&](Json& d) { parameter(d, 5)["value"] = "half"; }},
                   {"null with a value", [&](Json& d) { parameter(d, 6)["value"] = 0; }},
                   {"scratch without a size", [&](Json& d) { parameter(d, 7).erase("bytes"); }},
                   {"an array of scratch",
                    [&](Json& d) {
                      parameter(d, 8)["each"] = {{"bind", "scratch"}, {"bytes", 1}};
                    }},
                   {"a struct of nothing", [&](Json& d) { parameter(d, 9)["fields"] = Json::array(); }}});
}

// The report that `dcpcheck repro` writes now.
// Of the smallest scenario: it has all that the others have.
Json repro_report() {
  const fs::path corpus = fs::temp_directory_path() / ("dcpcheck-schema-test-" + std::to_string(::getpid()));
  const fs::path path = corpus.string() + ".json";
  fs::create_directories(corpus);
  for (const char* name : {"512-dcp1.json", "512-dcp4.json", "tokens-512-dcp1.json", "tokens-512-dcp4.json"}) {
    fs::copy_file(fs::path(DCPCHECK_SOURCE_DIR) / "corpora/issue-54907" / name, corpus / name);
  }
  const std::string command = std::string("'") + DCPCHECK_PROGRAM + "' repro --backend host --corpus '" + corpus.string() +
                              "' --json '" + path.string() + "' >&2";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): the program under test, no input of anybody's
  if (status != 0) throw std::runtime_error(command + " exited with wait status " + std::to_string(status));
  Json out = load(path);
  fs::remove(path);
  fs::remove_all(corpus);
  return out;
}

// One test, because each is a process of its own under ctest, and repro takes its time.
TEST(ReportSchema, AdmitsWhatReproWritesAndNoEditOfIt) {
  const Json report = repro_report();
  EXPECT_EQ(errors("report", report), "");
  EXPECT_FALSE(report.at("relations").empty());
  bool fault = false, violation = false, element = false;
  for (const Json& result : report.at("results")) {
    fault |= !result.at("fault").is_null();
    for (const Json& one : result.at("violations")) {
      violation = true;
      element |= !one.at("first").empty();
    }
  }
  EXPECT_TRUE(fault && violation && element) << "the report shows too little to try the schema with";

  Json good = report;
  // A result with a violation first, a relation of K rows, and little besides: each edit is validated anew.
  for (const Json& result : report.at("results")) {
    if (result.at("violations").empty() || result.at("violations")[0].at("first").empty()) continue;
    good["results"] = Json::array({result});
    break;
  }
  for (const Json& relation : report.at("relations")) {
    if (relation.at("quantity") != "k_rows") continue;
    good["relations"] = Json::array({relation});
    break;
  }
  good["results"][0]["worst_error"] = {{"fraction", "inf"}, {"buffer", "q_c_out"}, {"rank", 0}, {"index", {0, 1}}};
  for (const char* field :
       {"case",       "id",       "name",    "op",         "kernel",      "fault",      "contract", "backend",
        "world_size", "status",   "reason",  "expected",   "as_expected", "digests",    "tokens",   "tokens_poison_b",
        "tainted",    "left_out", "written", "must_write", "worst_error", "violations", "replay"}) {
    expect_rejected("report", good, {{field, [&](Json& d) { d["results"][0].erase(field); }}});
  }
  expect_rejected(
      "report", good,
      {{"another schema", [](Json& d) { d["schema"] = "dcpcheck.report/2"; }},
       {"no summary", [](Json& d) { d.erase("summary"); }},
       {"an unknown field", [](Json& d) { d["extra"] = 1; }},
       {"an unknown field of a result", [](Json& d) { d["results"][0]["extra"] = 1; }},
       {"an unknown status", [](Json& d) { d["results"][0]["status"] = "ok"; }},
       {"an unknown reason", [](Json& d) { d["results"][0]["violations"][0]["reason"] = "stray_write"; }},
       {"a contract option without a value", [](Json& d) { d["results"][0]["contract"]["division"] = nullptr; }},
       {"an unknown backend", [](Json& d) { d["results"][0]["backend"] = "auto"; }},
       {"a short digest", [](Json& d) { d["results"][0]["digests"]["all"] = "abc"; }},
       {"an output without its rank", [](Json& d) { d["results"][0]["digests"]["outputs"]["q_c_out"] = std::string(64, '0'); }},
       {"a short id", [](Json& d) { d["results"][0]["id"] = "abc"; }},
       {"a token range of one end",
        [](Json& d) { d["results"][0]["violations"][0]["tokens"] = Json::array({Json::array({1})}); }},
       {"an element without what was got", [](Json& d) { d["results"][0]["violations"][0]["first"][0].erase("got"); }},
       {"a bound's fraction in words", [](Json& d) { d["results"][0]["worst_error"]["fraction"] = "much"; }},
       {"negative taint", [](Json& d) { d["results"][0]["tainted"] = -1; }},
       {"K rows with ids",
        [](Json& d) {
          d["relations"][0]["dcp1_ids"] = {{1, 2}};
        }},
       {"K rows that are inconclusive", [](Json& d) { d["relations"][0]["inconclusive_at"] = nullptr; }},
       {"an unknown quantity", [](Json& d) { d["relations"][0]["quantity"] = "rows"; }},
       {"a relation without DCP4", [](Json& d) { d["relations"][0]["dcp4"] = Json::array(); }},
       {"a device that is a number", [](Json& d) { d["environment"]["device"] = 0; }},
       {"a summary without a status", [](Json& d) { d["summary"].erase("not-run"); }}});
}

// Invented reports, to the letter what the program would make of them: the only ones that have what no corpus shows.
TEST(ReportSchema, AdmitsTheApprovedReports) {
  for (const char* name : {"repro.json", "run.json"})
    EXPECT_EQ(errors("report", load(kSource / "reports/baselines" / name)), "") << name;
}

// The report of the baseline, with one result that has tokens and one relation between such.
Json report_with_tokens() {
  Json report = load(kSource / "reports/baselines/repro.json");
  const auto keep = [&](const char* list, const std::function<bool(const Json&)>& wanted) {
    for (const Json& one : report.at(list)) {
      if (!wanted(one)) continue;
      report[list] = Json::array({Json(one)});
      return;
    }
    throw std::runtime_error(std::string("the baseline shows none of the ") + list + " with tokens");
  };
  keep("results", [](const Json& one) { return !one.at("tokens").is_null() && !one.at("violations").empty(); });
  keep("relations", [](const Json& one) { return one.at("quantity") == "tokens" && !one.at("equal"); });
  return report;
}

TEST(ReportSchema, AdmitsTokensAndNoEditOfThem) {
  const Json good = report_with_tokens();
  ASSERT_TRUE(good["results"][0]["violations"][0].contains("stage"));
  expect_rejected(
      "report", good,
      {{"tokens on one poison", [](Json& d) { d["results"][0]["tokens_poison_b"] = nullptr; }},
       {"tokens on the other poison alone", [](Json& d) { d["results"][0]["tokens"] = nullptr; }},
       {"tokens without ids", [](Json& d) { d["results"][0]["tokens"].erase("ids"); }},
       {"tokens without a digest", [](Json& d) { d["results"][0]["tokens"].erase("digest"); }},
       {"tokens without steps", [](Json& d) { d["results"][0]["tokens"].erase("steps"); }},
       {"ids without their request",
        [](Json& d) {
          d["results"][0]["tokens"]["ids"] = {1, 2};
        }},
       {"an id below -1", [](Json& d) { d["results"][0]["tokens"]["ids"][0][0] = -2; }},
       {"an id past int32", [](Json& d) { d["results"][0]["tokens"]["ids"][0][0] = 2147483648; }},
       {"half an id", [](Json& d) { d["results"][0]["tokens_poison_b"]["ids"][0][0] = 0.5; }},
       {"a step without its stage", [](Json& d) { d["results"][0]["tokens"]["steps"][0].erase("stage"); }},
       {"a step without a margin", [](Json& d) { d["results"][0]["tokens"]["steps"][0].erase("margin"); }},
       {"a bound in words", [](Json& d) { d["results"][0]["tokens"]["steps"][0]["bound"] = "wide"; }},
       {"an empty stage", [](Json& d) { d["results"][0]["violations"][0]["stage"] = ""; }},
       {"an op that is null", [](Json& d) { d["results"][0]["violations"][0]["op"] = nullptr; }},
       {"a relation of tokens without DCP1's", [](Json& d) { d["relations"][0].erase("dcp1_ids"); }},
       {"a relation of tokens without DCP4's", [](Json& d) { d["relations"][0].erase("dcp4_ids"); }},
       {"a relation of tokens that leaves open if it is sure", [](Json& d) { d["relations"][0].erase("inconclusive_at"); }},
       {"half a step", [](Json& d) { d["relations"][0]["inconclusive_at"] = 0.5; }},
       {"equal from an inconclusive step on",
        [](Json& d) {
          d["relations"][0]["equal"] = true;
          d["relations"][0]["inconclusive_at"] = 5;
        }},
       {"tokens of each rank", [](Json& d) { d["relations"][0]["dcp4"].push_back(std::string(64, '0')); }},
       {"K rows with what tokens have", [](Json& d) { d["relations"][0]["quantity"] = "k_rows"; }}});
  for (const Json& value : {Json(0), Json(12), Json()}) {
    Json other = good;
    other["relations"][0]["inconclusive_at"] = value;
    EXPECT_EQ(errors("report", other), "") << value;
  }
  for (const Json& value : {Json(-0.5), Json("nan"), Json("-inf"), Json()}) {
    Json other = good;
    other["results"][0]["tokens"]["steps"][0]["margin"] = value;
    EXPECT_EQ(errors("report", other), "") << value;
  }
}

TEST(GoldenSchema, AdmitsTheStoredGoldensAndNoEditOfOne) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(kSource / "corpora/golden")) {
    EXPECT_EQ(errors("golden", load(entry.path())), "") << entry.path();
    ++files;
  }
  EXPECT_GE(files, 4);
  Json good = load(kSource / "corpora/golden/issue-54907.golden.json");
  // One of each kind is enough: valijson takes its time.
  Json kept = Json::array();
  for (const Json& entry : good["entries"])
    if (kept.size() < 2 && (entry.contains("tokens") != kept.empty())) kept.push_back(entry);
  good["entries"] = kept;
  ASSERT_EQ(good["entries"].size(), 2U);
  const auto first = [](Json& d) -> Json& { return d["entries"][0]; };
  expect_rejected("golden", good,
                  {{"another schema", [](Json& d) { d["schema"] = "dcpcheck.golden/2"; }},
                   {"no cases", [](Json& d) { d.erase("cases"); }},
                   {"a short digest", [&](Json& d) { first(d)["inputs"] = "12"; }},
                   {"no portable digest", [&](Json& d) { first(d)["outputs"].begin()->erase("portable"); }},
                   {"an output of no rank", [&](Json& d) { first(d)["outputs"]["kv_c_out"] = *first(d)["outputs"].begin(); }},
                   {"an unknown field", [&](Json& d) { first(d)["seconds"] = 1; }},
                   {"an environment without a driver", [&](Json& d) {
                      first(d)["environment"] = {{"kernel", "a"}, {"architecture", "b"}, {"cuda", nullptr}};
                    }}});
}

TEST(GoldenCheckSchema, AdmitsWhatVerifyWritesAndNoEditOfIt) {
  const fs::path path = fs::temp_directory_path() / ("dcpcheck-golden-check-" + std::to_string(::getpid()) + ".json");
  const std::string command = std::string("'") + DCPCHECK_PROGRAM + "' golden verify --backend host --kernel @k_gated '" +
                              (kSource / "corpora/golden/regressions.golden.json").string() + "' --json '" + path.string() +
                              "' >/dev/null";
  EXPECT_NE(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c): the program under test
  Json good = load(path);
  fs::remove(path);
  EXPECT_EQ(errors("golden_check", good), "");
  Json kept = Json::array();
  for (const Json& one : good["findings"])
    if (!one["places"].empty() && kept.empty()) kept.push_back(one);
  ASSERT_EQ(kept.size(), 1U);
  good["findings"] = kept;
  const auto place = [](Json& d) -> Json& { return d["findings"][0]["places"][0]; };
  expect_rejected(
      "golden_check", good,
      {{"another status", [](Json& d) { d["findings"][0]["status"] = "fine"; }},
       {"no summary", [](Json& d) { d.erase("summary"); }},
       {"neither was nor admissible", [&](Json& d) { place(d).erase(place(d).contains("was") ? "was" : "admissible"); }},
       {"both", [&](Json& d) { place(d)["was"] = place(d)["admissible"] = "0x00 (0)"; }},
       {"a token that is text", [&](Json& d) { place(d)["token"] = "3"; }}});
}

// What the command, a shell's, writes to the file "$OUT" in a folder of its own, in which it runs; it ends with `code`.
Json written_by(const std::string& command, int code) {
  const fs::path folder = fs::temp_directory_path() / ("dcpcheck-schema-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string line = "cd '" + folder.string() + "' && export OUT=out.json DCPCHECK='" DCPCHECK_PROGRAM "' && { " +
                           command + "; } >/dev/null 2>words";
  const int status = std::system(line.c_str());  // NOLINT(cert-env33-c): the program under test
  std::ifstream words(folder / "words");
  EXPECT_EQ(WEXITSTATUS(status), code) << std::string{std::istreambuf_iterator<char>(words), {}};
  Json document = load(folder / "out.json");
  fs::remove_all(folder);
  return document;
}

TEST(CompareSchema, AdmitsWhatCompareWritesAndNoEditOfIt) {
  const Json good = written_by(
      "\"$DCPCHECK\" compare repro:512-dcp4 --backend host --kernel fused_norm_rope --kernel @mean_over_one_more --json $OUT",
      1);
  ASSERT_FALSE(good["places"].empty());
  expect_rejected("compare", good,
                  {{"one kernel", [](Json& d) { d["kernels"].erase(0); }},
                   {"a place that is text", [](Json& d) { d["places"][0] = "out"; }},
                   {"a short id", [](Json& d) { d["case"] = "1"; }},
                   {"no outputs", [](Json& d) { d.erase("outputs"); }}});
}

TEST(BisectSchema, AdmitsWhatBisectWritesAndNoEditOfIt) {
  const fs::path libraries = fs::path(DCPCHECK_PROGRAM).parent_path().parent_path() / "libraries";
  const Json good = written_by(
      "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a "
      "GIT_COMMITTER_EMAIL=a@example.org && git init -q repo && for kernel in fused_eh_norm eps_left_out; do cp '" +
          libraries.string() +
          "'/$kernel.so repo/kernel.so && git -C repo add -A && git -C repo commit -q -m $kernel; done && \"$DCPCHECK\" bisect "
          "--repo "
          "repo --good HEAD^ --bad HEAD --kernel 'lib:{worktree}/kernel.so' --fuzz 20 --backend host --json $OUT",
      0);
  ASSERT_FALSE(good["compared"]["places"].empty());
  expect_rejected("bisect", good,
                  {{"another standing", [](Json& d) { d["revisions"][0]["standing"] = "fine"; }},
                   {"no candidates", [](Json& d) { d["candidates"] = Json::array(); }},
                   {"a short commit", [](Json& d) { d["first_bad"]["commit"] = "abc"; }},
                   {"a place that is text", [](Json& d) { d["compared"]["places"][0] = "out"; }},
                   {"no case", [](Json& d) { d.erase("case"); }}});
}

}  // namespace
