// The example that a manifest describes, on a GPU.
#include "harness/adapters/cubin.hpp"

#include <gmock/gmock.h>

#include <iterator>

#include "harness/adapters/library.hpp"
#include "harness/adapters/manifest_test.hpp"
#include "harness/core/error.hpp"
#include "properties/test_bench.hpp"

#ifdef DCPCHECK_CUBINS

namespace dcpcheck {
namespace {

using testing::HasSubstr;

std::string file(const std::string& name) {
  std::ifstream in(std::string(DCPCHECK_CUBINS) + "/" + name, std::ios::binary);
  if (!in) throw std::runtime_error(name + " cannot be opened");
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string replaced_everywhere(std::string text, const std::string& what, const std::string& with) {
  if (text.find(what) == std::string::npos) throw std::invalid_argument("no " + what);
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

class CubinTest : public testing::Test {
 protected:
  const Op& op() const { return bench_.ops.at("fused_eh_norm"); }

  // An example with `with` in place of `what`, beside its files.
  Kernel load(const std::string& what, const std::string& with, const std::string& example = "fused_eh_norm") const {
    for (const char* kind : {".cubin", ".ptx"}) static_cast<void>(folder_.write(example + kind, file(example + kind)));
    return load_cubin("cubin:" + folder_.write("m.json", replaced_everywhere(file(example + ".json"), what, with)), bench_.ops);
  }

  Verdict verdict(const Kernel& kernel, Backend& backend, const Case& value) const {
    Prepared prepared = prepare(bench_.ops.at(value.op), bench_.references.at(value.op), value, TestBench::kMemory, 1);
    return run_case(prepared, kernel, backend, {}).verdict;
  }
  Case small(const std::string& more = "") const {
    return case_from_json(
        bench_.ops,
        json::parse(R"({"op": "fused_eh_norm", "seed": "0000000000000007", "geometry": {"batch": [{"uncached": 3},
{"cached": 2, "uncached": 4}], "padding": {"tokens": 2}, "tp": 2}, "params": {"hidden_size": 64, "embeds_eps": 1, "hidden_eps": 1})" +
                        more + "}",
                    "case"),
        "case");
  }

  const ManifestFolder folder_;
  const TestBench bench_;
};

TEST_F(CubinTest, TheExamplesAreReadOnAnyMachine) {
  for (const char* kind : {".cubin", ".ptx"}) {
    const Kernel kernel = load("fused_eh_norm.cubin", std::string("fused_eh_norm") + kind);
    EXPECT_FALSE(kernel.host);
    EXPECT_TRUE(kernel.cuda);
    EXPECT_EQ(kernel.op, "fused_eh_norm");
    EXPECT_EQ(kernel.declared->name, "fused_eh_norm example");
    EXPECT_EQ(load(".cubin", kind, "compute_slot_mapping").op, "compute_slot_mapping");
  }
  EXPECT_THROW(static_cast<void>(load("\"type\": \"i8\"", "\"type\": \"i32\"")), InputError);
}

TEST_F(CubinTest, TheExampleAgreesWithTheLibraryOnGeneratedCases) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  const Kernel as_cubin = load("fused_eh_norm.cubin", "fused_eh_norm.cubin"),
               as_ptx = load("fused_eh_norm.cubin", "fused_eh_norm.ptx");
  const Kernel general = load("\"name\": \"by 8\",", "\"name\": \"by 8\", \"when\": \"0\",");
  const Kernel library = load_library("lib:" DCPCHECK_LIBRARIES "/fused_eh_norm_cuda.so", bench_.ops);
  const std::unique_ptr<Backend> cuda = make_cuda_backend();
  GenerateOptions options = bench_.generate_options(op());
  options.check = [&](const Case& value) {
    const std::string not_for = why_not(*as_cubin.declared, make_plan(op(), value, TestBench::kMemory));
    if (!not_for.empty()) throw InputError(not_for);
  };
  const Generator generator(op(), options);
  for (std::uint64_t index = 0; index < 200; ++index) {
    const Case value = generator(54907, index);
    const Verdict expected = verdict(library, *cuda, value);
    ASSERT_EQ(expected.status, Status::pass);
    for (const Kernel* kernel : {&as_cubin, &as_ptx, &general}) {
      const Verdict found = verdict(*kernel, *cuda, value);
      ASSERT_EQ(found.status, Status::pass) << found.detail << "\n" << json::dump(case_to_json(op(), value));
      ASSERT_EQ(found.compared, expected.compared);
      ASSERT_EQ(found.written, expected.written);
    }
  }
}

TEST_F(CubinTest, AFaultInTheManifestIsCaught) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  const std::unique_ptr<Backend> cuda = make_cuda_backend();
  EXPECT_EQ(verdict(load("\"param\": \"embeds_eps\"", "\"param\": \"embeds_eps\""), *cuda, small()).status, Status::pass);
  const Kernel no_eps = load(R"("bind": "number", "param": "embeds_eps")", R"("bind": "constant", "value": 0)");
  EXPECT_EQ(verdict(no_eps, *cuda, small()).reason, Reason::inadmissible);
  EXPECT_EQ(verdict(load("[\"T\", 2]", "[\"T\", 1]"), *cuda, small()).reason, Reason::unwritten);
  EXPECT_EQ(verdict(load("[\"T\", 2]", "[0]"), *cuda, small()).reason, Reason::unwritten);
  EXPECT_EQ(verdict(load("\"4 * 256\"", "1000000"), *cuda, small()).reason, Reason::launch_refused);
}

// Of memory that is a launch's own: arrays with an element a cache group, and zeroed scratch; in captured graphs, too.
TEST_F(CubinTest, ArraysAndScratchHoldWhatTheyShould) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  const std::unique_ptr<Backend> cuda = make_cuda_backend();
  const std::string name = "compute_slot_mapping";
  const Kernel right = load("\"any\"", "\"any\"", name), as_ptx = load(name + ".cubin", name + ".ptx", name);
  const Kernel not_zeroed = load("\"zeroed\": true", "\"zeroed\": false", name);
  const Kernel first_row = load(R"({"bind": "stride", "tensor": "block_table", "axis": 0, "type": "i64"})",
                                R"({"bind": "constant", "value": 0, "type": "i64"})", name);
  const Op& slots = bench_.ops.at(name);
  GenerateOptions options = bench_.generate_options(slots);
  options.check = [&](const Case& value) {
    const std::string not_for = why_not(*right.declared, make_plan(slots, value, TestBench::kMemory));
    if (!not_for.empty()) throw InputError(not_for);
  };
  const Generator generator(slots, options);
  int graphs = 0, several = 0, unfilled = 0, wrong = 0;
  for (std::uint64_t index = 0; index < 150; ++index) {
    const Case value = generator(54907, index);
    graphs += value.graph ? 1 : 0;
    several += value.geometry.caches.size() > 1 ? 1 : 0;
    for (const Kernel* kernel : {&right, &as_ptx}) {
      const Verdict found = verdict(*kernel, *cuda, value);
      ASSERT_EQ(found.status, Status::pass) << found.detail << "\n" << json::dump(case_to_json(slots, value));
    }
    unfilled += verdict(not_zeroed, *cuda, value).reason == Reason::unwritten ? 1 : 0;
    wrong += verdict(first_row, *cuda, value).status == Status::fail ? 1 : 0;
  }
  EXPECT_GT(graphs, 0);
  EXPECT_GT(several, 0);
  EXPECT_GT(unfilled, 0);
  EXPECT_GT(wrong, 0);
}

TEST_F(CubinTest, TheLaunchIsCapturedAndAttributesAreTaken) {
  std::string why;
  if (!cuda_available(&why)) GTEST_SKIP() << why;
  const std::unique_ptr<Backend> cuda = make_cuda_backend();
  const Case graph = small(R"(, "launch": {"graph": true})");
  for (const char* attribute :
       {R"("cooperative": true,)", R"("cluster": [1, 2],)", R"("programmatic_stream_serialization": true,)"}) {
    const Kernel kernel = load("\"block\":", std::string(attribute) + " \"block\":");
    EXPECT_EQ(verdict(kernel, *cuda, small()).status, Status::pass) << attribute;
    EXPECT_EQ(verdict(kernel, *cuda, graph).status, Status::pass) << attribute;
  }
  const Kernel much = load("\"4 * 256\"", "200000");
  EXPECT_EQ(verdict(much, *cuda, graph).status, Status::pass);
}

}  // namespace
}  // namespace dcpcheck

#endif
