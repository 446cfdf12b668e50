// Inputs that a file beside the case holds, and slots that are told with positions that do not begin at 0.
#include <gmock/gmock.h>
#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "harness/core/digest.hpp"
#include "harness/core/error.hpp"
#include "harness/core/inputs.hpp"
#include "harness/core/test_ops.hpp"

namespace dcpcheck {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class StoredTest : public testing::Test {
 protected:
  StoredTest() { std::filesystem::create_directories(folder_); }
  ~StoredTest() override { std::filesystem::remove_all(folder_); }

  // A case of 3 tokens of 4 bf16, whose q_c is what `digest` names.
  CaseFile load(const std::string& digest, const std::string& more = "") const {
    const std::string path = (folder_ / "case.json").string();
    std::ofstream(path)
        << R"({"schema":"dcpcheck.case/1","case":{"op":"fused_norm_rope","geometry":{"batch":[{"uncached":3}])" + more +
               R"(},"params":{"q_lora_rank":4},"layout":{"q_c":{"stride":6,"offset":1}},"values":{"q_c":"stored:)" + digest +
               R"("}}})";
    return load_case_file(ops_, path);
  }
  // A file of the folder, called by the digest of what it holds.
  std::string store(const std::string& bytes) const {
    const std::string digest = sha256_hex(bytes);
    std::ofstream(folder_ / (digest + ".bin"), std::ios::binary) << bytes;
    return digest;
  }
  template <class Call>
  static std::string refusal(Call call) {
    try {
      call();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  Plan plan(const CaseFile& file) const {
    return make_plan(ops_.at("fused_norm_rope"), file.value, std::int64_t{1} << 32, "c");
  }

  const Ops ops_ = ops_of_source();
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      ("dcpcheck-stored-" + std::to_string(::getpid()) + "-" + testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(StoredTest, ElementsLieWhereTheLayoutHasThem) {
  const std::string bytes = "abcdefghijklmnopqrstuvwx";
  const CaseFile file = load(store(bytes));
  const Plan planned = plan(file);
  const Bytes storage = make_input(planned, planned.tensor("q_c"), 0);
  ASSERT_EQ(storage.size(), (1 + 3 * 6) * 2U);
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_EQ(std::memcmp(storage.data() + 2 * (1 + row * 6), bytes.data() + row * 8, 8), 0) << row;
  // The id has the digest, so that other bytes are another case; and it does not depend on where the file lies.
  const Op& op = ops_.at("fused_norm_rope");
  EXPECT_NE(case_id(op, file.value), case_id(op, load(store("ABCDEFGHIJKLMNOPQRSTUVWX")).value));
  EXPECT_EQ(case_id(op, file.value), case_id(op, case_from_json(ops_, case_to_json(op, file.value), "again")));
}

TEST_F(StoredTest, WhatDoesNotFitIsRefused) {
  const std::string good = store("abcdefghijklmnopqrstuvwx"), shorter = store("abcdefghijklmnopqrstuvw");
  EXPECT_EQ(refusal([&] { static_cast<void>(plan(load(shorter))); }),
            "c: /values/q_c: " + shorter + ".bin has 23 bytes, but q_c of this case has 12 elements of bf16");
  EXPECT_THAT(refusal([&] { load(std::string(64, 'a')); }),
              AllOf(HasSubstr("case.json: /case/values/q_c: "), HasSubstr("could not be read: No such file")));
  std::ofstream(folder_ / (good + ".bin")) << "abcdefghijklmnopqrstuvwX";
  EXPECT_THAT(refusal([&] { load(good); }), HasSubstr("does not hold what its name, a SHA-256, says"));
  for (const std::string& digest : {std::string("ab"), std::string(64, 'A'), std::string(63, 'a') + "g", std::string()})
    EXPECT_THAT(refusal([&] { load(digest); }), HasSubstr("in 64 lower-case hex digits")) << digest;
  store("abcdefghijklmnopqrstuvwx");
  EXPECT_THAT(refusal([&] { load(good, R"(,"padding":{"values":"stored:)" + good + "\"}"); }),
              HasSubstr("a recipe of another kind is needed"));
  // What is read from text alone has no folder.
  const std::string text = R"({"schema":"dcpcheck.case/1","case":{"op":"fused_norm_rope","geometry":{"batch":[{"uncached":3}]},
"params":{"q_lora_rank":4},"values":{"q_c":"stored:)" +
                           good + "\"}}}";
  EXPECT_THAT(refusal([&] { static_cast<void>(plan(parse_case_file(ops_, text, "text"))); }),
              HasSubstr(good + ".bin was not read"));
}

TEST_F(StoredTest, ToldSlotsGoWithCachedTokensOnlyWhereNoneOfTheirRowsIsRead) {
  const auto read = [&](const std::string& op, const std::string& mapping) {
    return refusal([&] {
      const Case value = case_from_json(
          ops_,
          json::parse(
              R"({"op":")" + op + R"(","geometry":{"batch":[{"cached":7,"uncached":2}],"caches":{"mla":)" + mapping + "}}}",
              "c"),
          "c");
      const Plan planned = make_plan(ops_.at(op), value, std::int64_t{1} << 32);
      const Bytes positions = make_input(planned, planned.tensor("positions"), 0);
      std::int64_t first = 0;
      std::memcpy(&first, positions.data(), sizeof first);
      EXPECT_EQ(first, 7);
      EXPECT_TRUE(make_inputs(planned).prefix.at("mla_cache").front().empty());
    });
  };
  EXPECT_EQ(read("fused_norm_rope", R"({"slot_mapping":"explicit","slots":[[5,-1]]})"), "");
  EXPECT_THAT(read("fused_norm_rope", R"({"slot_mapping":"random"})"), HasSubstr("which has no place for cached tokens"));
  EXPECT_THAT(read("gather_cache", R"({"slot_mapping":"explicit","slots":[[5,-1]]})"),
              HasSubstr("which has no place for cached tokens"));
}

}  // namespace
}  // namespace dcpcheck
