// Manifests: what reading refuses, in one sentence, and what it takes.
#include "harness/adapters/manifest.hpp"

#include <elf.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>
#include <map>
#include <vector>

#include "harness/adapters/cubin.hpp"
#include "harness/adapters/device_code.hpp"
#include "harness/adapters/manifest_test.hpp"
#include "harness/core/error.hpp"
#include "properties/test_bench.hpp"

namespace dcpcheck {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A good manifest of fused_eh_norm, of which tests replace a part.
const char* const kGood = R"({
  "schema": "dcpcheck.manifest/1", "op": "fused_eh_norm", "name": "a test's", "doc": "Does nothing.",
  "contract": {"norm_round": ["none", "bf16"]}, "tensors": ["positions", "embeds", "embeds_weight", "previous_hidden", "hidden_weight", "out"],
  "requirements": [{"that": "hidden_size % 8 == 0", "say": "whole vectors"}],
  "values": {"tiles": "(hidden_size + 127) / 128", "twice": "2 * tiles"},
  "variants": [{
    "name": "all", "module": "k.ptx", "entry": "k", "when": "positions.present && T > 0",
    "requires": [{"address": "embeds", "offset": "2", "divisible_by": 2}, {"value": "out.stride1", "equal_to": 1}],
    "grid": ["T", "twice", 1], "block": [128], "shared_bytes": "4 * tiles", "cooperative": true, "cluster": [1, 2],
    "programmatic_stream_serialization": true,
    "parameters": [
      {"name": "x", "bind": "address", "tensor": "embeds", "offset": "0", "align": 2},
      {"name": "n", "bind": "stride", "tensor": "embeds", "axis": 0, "type": "i32"},
      {"bind": "shape", "tensor": "out", "axis": 1, "type": "i64", "optional": true},
      {"bind": "value", "value": "hidden_size - 1", "type": "i16"},
      {"bind": "number", "param": "embeds_eps", "type": "f32"},
      {"bind": "constant", "value": -1.5, "type": "f64"},
      {"bind": "constant", "value": -128, "type": "i8"},
      {"bind": "null"},
      {"bind": "scratch", "bytes": "4 * T", "zeroed": true},
      {"bind": "struct", "fields": [{"bind": "constant", "value": 1, "type": "i8"}, {"bind": "null"}]}
    ]}]
})";

const char* const kParameters =
    ".param .u64 .ptr .global .align 2 x, .param .u32 n, .param .u64 c, .param .u16 d, .param .f32 e, .param .f64 f, "
    ".param .u8 g, .param .u64 h, .param .u64 .ptr .align 1 i, .param .align 8 .b8 j[16]";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) throw std::invalid_argument("no " + what);
  return text.replace(at, what.size(), with);
}

class ManifestTest : public testing::Test {
 protected:
  ManifestTest() { static_cast<void>(folder_.write("k.ptx", ptx_with(kParameters))); }

  Manifest read(const std::string& text) const {
    return read_manifest(folder_.write("manifest.json", text), bench_.ops, "cubin:manifest.json");
  }
  std::string refusal(const std::string& text) const {
    try {
      static_cast<void>(read(text));
    } catch (const InputError& error) {
      return error.what();
    }
    return "read";
  }
  // Of the good one, with one part replaced.
  std::string refusal(const std::string& what, const std::string& with) const { return refusal(replaced(kGood, what, with)); }

  const ManifestFolder folder_;
  const TestBench bench_;
};

TEST_F(ManifestTest, WhatItDeclaresIsReadWhole) {
  const Manifest manifest = read(kGood);
  EXPECT_EQ(manifest.op->name, "fused_eh_norm");
  EXPECT_EQ(manifest.declared.name, "a test's");
  EXPECT_EQ(manifest.declared.options, (std::map<std::string, std::vector<std::string>>{{"norm_round", {"none", "bf16"}}}));
  EXPECT_EQ(manifest.declared.tensors->size(), 6U);
  EXPECT_EQ(manifest.declared.requirements.front().say, "whole vectors");
  ASSERT_EQ(manifest.variants.size(), 1U);
  const Variant& variant = manifest.variants.front();
  EXPECT_TRUE(variant.cooperative && variant.programmatic_stream_serialization);
  EXPECT_EQ(variant.grid[1].text(), "twice");
  EXPECT_EQ(variant.cluster[1].text(), "2");
  EXPECT_EQ(variant.parameters[0].place, "/variants/0/parameters/0 (x)");
  EXPECT_EQ(variant.parameters[9].bytes(), 16);
  EXPECT_EQ(*manifest.modules.at("k.ptx"), ptx_with(kParameters));
  EXPECT_EQ(refusal("\"k.ptx\"", "\"./k.ptx\""), "read");
}

TEST_F(ManifestTest, ADefectIsASentenceThatNamesTheParameter) {
  const std::string variant = "/variants/0/";
  const std::string x = variant + "parameters/0/";
  struct Defect {
    std::string what, with, sentence;
  };
  const std::vector<Defect> defects{
      {R"("dcpcheck.manifest/1")", R"("dcpcheck.manifest/2")",
       "/schema is \"dcpcheck.manifest/2\", but dcpcheck.manifest/1 is needed"},
      {R"("op": "fused_eh_norm")", R"("op": "fused_eh_nrom")", "did you mean \"fused_eh_norm\"?"},
      {R"("op": "fused_eh_norm")", R"("op": "generate")", "/op is \"generate\", but "},
      {R"("doc":)", R"("dok":)", "/dok is not known here; did you mean \"doc\"?"},
      {R"("name": "a test's",)", "", "the document has no \"name\""},
      {R"("norm_round": ["none", "bf16"])", R"("norm_raund": ["none"])",
       "it follows the contract option 'norm_raund', which fused_eh_norm does not have: did you mean norm_round?"},
      {R"(["none", "bf16"])", R"(["fp16"])",
       "it follows the contract option norm_round as 'fp16', which is none of none or bf16"},
      {R"(["none", "bf16"])", "[]",
       "/contract/norm_round is an array, but an option is followed as at least one of its values"},
      {R"("contract": {)", R"("preset": "vllm_packed", "contract": {)",
       "it follows the preset 'vllm_packed', which fused_eh_norm does not have: it has no presets"},
      {R"("contract": {)", R"("preset": "", "contract": {)", "/preset is \"\", but the name of a preset is needed"},
      {R"("tensors": ["positions")", R"("tensors": ["position")", "it knows the tensor 'position', which "},
      {"hidden_size % 8 == 0",
       "hidden_size % 8 ==", "/requirements/0/that is no expression: expression \"hidden_size % 8 ==\""},
      {"hidden_size % 8 == 0", "hidden_sise % 8 == 0", "did you mean hidden_size?"},
      {R"("twice": "2 * tiles")", R"("twice": "2 * twice")", "/values/twice is defined by itself"},
      {R"("tiles": "(hidden_size + 127) / 128")", R"("tiles": "twice")",
       "/values/tiles names 'twice', which neither fused_eh_norm nor \"values\" above it has"},
      {R"("tiles": "(hidden)", R"("T": "(hidden)",
       "/values/T is \"(hidden_size + 127) / 128\", but there is something called that already"},
      {R"("tiles": "(hidden_size + 127) / 128")", R"("tiles": "7 / (3 - 3) + 1")",
       "/values/tiles is no expression: expression \"7 / (3 - 3) + 1\": divides by zero"},
      {"positions.present && T > 0", "position.present", variant + "when names 'position.present', which neither "},
      {"positions.present && T > 0", "embeds_eps", variant + "when names 'embeds_eps', which is no whole number or choice"},
      {"out.stride1", "out.stride2", variant + "requires/1/value names 'out.stride2', which neither "},
      {R"(, "equal_to": 1)", "",
       variant + R"(requires/1 is an object, but it must have "divisible_by" or "equal_to", one of them)"},
      {R"("divisible_by": 2)", R"("divisible_by": 0)", variant + "requires/0/divisible_by is 0, but an integer from 1 to "},
      {R"("offset": "2", "divisible_by": 2)", R"("equal_to": 2)", variant + "requires/0 has no \"divisible_by\""},
      {R"({"address": "embeds")", R"({"address": "embed")",
       variant + "requires/0/address is 'embed', a tensor that fused_eh_norm does not have: did you mean embeds?"},
      {R"(["T", "twice", 1])", "[]", variant + "grid is an array, but one, two or three extents are needed: x, y, z"},
      {R"(["T", "twice", 1])", "[1, 1, 1, 1]", variant + "grid is an array, but one, two or three extents"},
      {R"(["T", "twice", 1])", R"(["T", 65536])",
       "/variants/0 cannot be launched: the grid would be 65536 in y, where CUDA has 0 to 65535"},
      {R"(["T", "twice", 1])", R"(["4294967296 * 2"])", "/variants/0 cannot be launched: the grid would be 8589934592 in x"},
      {R"("block": [128])", R"("block": [2048])",
       "/variants/0 cannot be launched: a block would be 2048 in x, where CUDA has 1 to 1024"},
      {R"("block": [128])", R"("block": [128, 16])", "/variants/0 cannot be launched: a block would have 2048 threads"},
      {R"("block": [128])", R"("block": [true])", variant + "block/0 is true, but an expression or a whole number is needed"},
      {R"("block": [128])", R"("block": [1.5])", variant + "block/0 is 1.5, but an expression or a whole number is needed"},
      {R"("cooperative": true)", R"("cooperative": 1)", variant + "cooperative is 1, but true or false is needed"},
      {R"("tensor": "embeds", "offset")", R"("tensor": "embed", "offset")", x + "tensor is 'embed', a tensor that "},
      {R"("tensor": "embeds", "offset")", R"("tensor": "embeds.mla", "offset")", x + "tensor is 'embeds.mla', a tensor that "},
      {R"("align": 2)", R"("alihn": 2)", x + "alihn is not known here; did you mean \"align\"?"},
      {R"("bind": "address")", R"("bind": "adress")", x + "bind is \"adress\", but "},
      {R"("axis": 0)", R"("axis": 2)", variant + "parameters/1/axis is 2, but an integer from 0 to 1 is needed"},
      {R"("type": "i32")", R"("type": "int")",
       variant + "parameters/1/type is \"int\", but i8, i16, i32, i64, f32 or f64 is needed"},
      {R"("type": "i32")", R"("type": "i64")", variant + "parameters/1 (n) is 8 bytes, but k takes 4 there"},
      {R"("param": "embeds_eps")", R"("param": "hidden_size")",
       variant + "parameters/4/param is \"hidden_size\", but embeds_eps or hidden_eps is needed"},
      {R"("embeds_eps", "type": "f32")", R"("embeds_eps", "type": "i32")",
       variant + "parameters/4/type is \"i32\", but an fp32 number is passed as f32 or f64"},
      {R"("value": -1.5)", R"("value": "-1.5")", variant + "parameters/5/value is "},
      {"-128", "-129", variant + "parameters/6/value is -129, but an integer from -128 to 127 is needed"},
      {R"({"bind": "null"},)", "", variant + "parameters/8 is 16 bytes, but k takes 8 there"},
      {R"({"bind": "null"},)", R"({"bind": "null"}, {"bind": "null"},)",
       variant + "parameters/9 is 8 bytes, but k takes 16 there"},
      {R"({"bind": "constant", "value": 1, "type": "i8"})", R"({"bind": "struct", "fields": []})",
       variant + "parameters/9/fields/0/bind is \"struct\", but only a parameter can be a struct"},
      {R"("entry": "k")", R"("entry": "kk")", variant + "entry is 'kk', a kernel that k.ptx does not have: did you mean k?"},
      {R"("module": "k.ptx")", R"("module": "../k.ptx")",
       variant + "module is '../k.ptx', which is no file in the manifest's folder"},
      {R"("module": "k.ptx")", R"("module": "/etc/passwd")", variant + "module is '/etc/passwd', which is no file in "},
      {R"("module": "k.ptx")", R"("module": "")", variant + "module is '', which is no file in "},
      {R"("module": "k.ptx")", R"("module": "none.ptx")", variant + "module: none.ptx cannot be read: No such file"},
      {R"("module": "k.ptx")", R"("module": "manifest.json")",
       variant + "module is 'manifest.json', a file that is neither a cubin nor PTX"},
  };
  for (const Defect& defect : defects) {
    const std::string found = refusal(defect.what, defect.with);
    EXPECT_THAT(found, StartsWith("cubin:manifest.json: ")) << defect.with;
    EXPECT_THAT(found, HasSubstr(defect.sentence));
    EXPECT_EQ(found.find('\n'), std::string::npos) << found;
  }
}

TEST_F(ManifestTest, APresetIsFollowedButForWhatIsSaidBesides) {
  static_cast<void>(folder_.write("none.ptx", ptx_with("")));
  const auto manifest = [](const std::string& preset) {
    return R"({"schema": "dcpcheck.manifest/1", "op": "fused_norm_rope", "name": "a", "preset": ")" + preset +
           R"(", "contract": {"nan": ["0x7F", "clamp"], "k_outputs": ["in_place", "separate"]}, "requirements": [{"that": "q_c.dense"}],
"variants": [{"name": "a", "module": "none.ptx", "entry": "k", "grid": [1], "block": [1], "parameters": []}]})";
  };
  const Manifest read_one = read(manifest("vllm_packed"));
  EXPECT_EQ(read_one.declared.preset, "vllm_packed");
  EXPECT_EQ(read_one.declared.options,
            (std::map<std::string, std::vector<std::string>>{
                {"k_outputs", {"in_place", "separate"}}, {"nan", {"0x7F", "clamp"}}, {"tile_scale", {"fp32_div"}}}));
  ASSERT_EQ(read_one.declared.requirements.size(), 2U);
  EXPECT_EQ(read_one.declared.requirements[1].that.text(), "q_c.dense");
  EXPECT_THAT(refusal(manifest("vllm")), HasSubstr("it has vllm_in_place, vllm_packed, vllm_54908 or vllm_49435"));
}

TEST_F(ManifestTest, EveryTruncationIsRefused) {
  const std::string good = kGood;
  for (std::size_t length = 0; length + 1 < good.size(); length += 37)
    EXPECT_THAT(refusal(good.substr(0, length)), StartsWith("cubin:manifest.json: ")) << length;
  EXPECT_EQ(refusal(R"({"schema": "dcpcheck.manifest/1", "schema": "dcpcheck.manifest/1"})").find("read"), std::string::npos);
}

TEST_F(ManifestTest, AVariantNeedsANameOfItsOwnAndAManifestAVariant) {
  const std::string good = kGood;
  const std::size_t begin = good.find("\"variants\": [") + 13;
  const std::string variant = good.substr(begin, good.rfind("}]") + 1 - begin);
  EXPECT_THAT(refusal(replaced(good, variant, variant + ", " + variant)),
              HasSubstr("/variants/1/name is \"all\", but another variant is called that"));
  EXPECT_THAT(refusal(replaced(good, variant, "")),
              HasSubstr("/variants is an array, but a manifest needs at least one variant"));
}

TEST_F(ManifestTest, ALinkOutOfTheFolderIsRefused) {
  const ManifestFolder other;
  std::filesystem::create_symlink(other.write("k.ptx", ptx_with(kParameters)), folder_.path() / "link.ptx");
  EXPECT_THAT(refusal("\"k.ptx\"", "\"link.ptx\""), HasSubstr("which is no file in the manifest's folder"));
  std::filesystem::create_symlink(folder_.path() / "k.ptx", folder_.path() / "inside.ptx");
  EXPECT_EQ(refusal("\"k.ptx\"", "\"inside.ptx\""), "read");
}

TEST_F(ManifestTest, AManifestThatIsNotThereIsRefused) {
  const auto loading = [&](const std::string& spec) -> std::string {
    try {
      static_cast<void>(load_cubin(spec, bench_.ops));
    } catch (const InputError& error) {
      return error.what();
    }
    return "loaded";
  };
  EXPECT_EQ(loading("cubin:"), "--kernel cubin: names no file");
  EXPECT_EQ(loading("cubin:/nowhere/m.json"), "/nowhere/m.json: cannot be opened: No such file or directory");
  EXPECT_THAT(loading("cubin:" + folder_.path().string()), HasSubstr(": cannot be read: Is a directory"));
}

TEST_F(ManifestTest, TensorsOfCacheGroupsAreNamedByGroupOrInAnArray) {
  const auto manifest = [](const std::string& parameter) {
    return R"({"schema": "dcpcheck.manifest/1", "op": "compute_slot_mapping", "name": "a", "variants": [{"name": "a", "module": "p.ptx",
"entry": "k", "grid": [1], "block": [1], "parameters": [)" +
           parameter + "]}]}";
  };
  static_cast<void>(folder_.write("p.ptx", ptx_with(".param .u64 a")));
  EXPECT_EQ(refusal(manifest(R"({"bind": "address", "tensor": "block_table.full"})")), "read");
  EXPECT_EQ(refusal(manifest(R"({"bind": "array", "each": {"bind": "address", "tensor": "block_table"}})")), "read");
  EXPECT_EQ(
      refusal(manifest(
          R"({"bind": "array", "each": {"bind": "value", "value": "block_table.stride0 * group.block_size", "type": "i32"}})")),
      "read");
  EXPECT_THAT(refusal(manifest(R"({"bind": "address", "tensor": "block_table"})")),
              HasSubstr("/variants/0/parameters/0/tensor is 'block_table', of which there is one for each cache group"));
  EXPECT_THAT(refusal(manifest(R"({"bind": "value", "value": "block_table.stride0", "type": "i64"})")),
              HasSubstr("names 'block_table.stride0', which neither "));
  EXPECT_THAT(refusal(manifest(R"({"bind": "array", "each": {"bind": "array", "each": {"bind": "null"}}})")),
              HasSubstr("/variants/0/parameters/0/each/bind is \"array\", but this stands within an array, where "));
  EXPECT_THAT(refusal(manifest(R"({"bind": "number", "param": "eps", "type": "f32"})")),
              HasSubstr("compute_slot_mapping has no params that are fp32 numbers"));
}

TEST(DeviceCode, PtxSaysWhatItsKernelsTake) {
  const auto entries =
      entries_of(ptx_with(kParameters) + "/* .entry none() */ .visible .func f(.param .u64 a) { ret; }\n.entry n { }");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries.at("k")->bytes, (std::vector<std::int64_t>{8, 4, 8, 2, 4, 8, 1, 8, 8, 16}));
  EXPECT_TRUE(entries.at("n")->bytes.empty());
}

TEST(DeviceCode, WhatIsCutShortIsRefused) {
  const auto refusal = [](const std::string& code) -> std::string {
    try {
      static_cast<void>(entries_of(code));
    } catch (const InputError& error) {
      return error.what();
    }
    return "read";
  };
  const std::string ptx = ptx_with(kParameters);
  EXPECT_EQ(refusal(ptx), "read");
  EXPECT_EQ(refusal(ptx.substr(0, ptx.size() - 3)), "is cut short: a { has no }");
  EXPECT_EQ(refusal(ptx.substr(0, ptx.find(".param .u32"))), "is cut short");
  EXPECT_EQ(refusal(ptx.substr(0, ptx.find("k("))), "is cut short");
  EXPECT_EQ(refusal(ptx + "/* "), "is cut short: a comment has no end");
  EXPECT_EQ(refusal(""), "is empty");
  EXPECT_EQ(refusal("\x7F"
                    "ELF"),
            "is cut short");
  EXPECT_EQ(refusal("\x7F"
                    "ELF" +
                    std::string(60, '\0')),
            "is an ELF file, but no cubin");
  EXPECT_EQ(refusal("lib"), "is neither a cubin nor PTX");
}

// A cubin as far as dcpcheck looks into one, put together without nvcc: a kernel called "k" of one parameter of 8 bytes.
std::string small_cubin() {
  const std::string names = std::string(1, '\0') + ".shstrtab" + '\0' + ".nv.info.k" + '\0';
  std::string info(16, '\0');
  const std::uint8_t record[] = {4, 0x17, 12, 0};  // a sized record of 12 bytes that tells a parameter
  std::memcpy(info.data(), record, sizeof record);
  const std::uint32_t size = 8U << 18;
  std::memcpy(info.data() + 12, &size, sizeof size);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = 190;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  header.e_phoff = sizeof header;
  header.e_shoff = sizeof header + names.size() + info.size();
  Elf64_Shdr sections[3]{};
  sections[1] = {1, SHT_STRTAB, 0, 0, sizeof header, names.size(), 0, 0, 1, 0};
  sections[2] = {11, SHT_PROGBITS, 0, 0, sizeof header + names.size(), info.size(), 0, 0, 1, 0};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + names + info +
         std::string(reinterpret_cast<const char*>(sections), sizeof sections);
}

// Any byte may be wrong: it is read within its bounds, or refused.
void expect_no_harm(const std::string& code, std::size_t step) {
  for (std::size_t at = 0; at < code.size(); at += step) {
    std::string bad = code;
    bad[at] = static_cast<char>(bad[at] ^ 0xFF);
    try {
      static_cast<void>(entries_of(bad));
    } catch (const InputError&) {
      continue;
    }
  }
}

TEST(DeviceCode, EveryTruncationOfACubinIsRefused) {
  const std::string code = small_cubin();
  const auto entries = entries_of(code);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries.at("k")->bytes, (std::vector<std::int64_t>{8}));
  for (std::size_t length = 0; length < code.size(); ++length)
    EXPECT_THROW(static_cast<void>(entries_of(code.substr(0, length))), InputError) << length;
  expect_no_harm(code, 1);
}

TEST_F(ManifestTest, ATruncatedCubinIsASentenceThatNamesIt) {
  static_cast<void>(folder_.write("k.cubin", small_cubin().substr(0, 100)));
  EXPECT_EQ(refusal("\"k.ptx\"", "\"k.cubin\""),
            "cubin:manifest.json: /variants/0/module is 'k.cubin', a file that is cut short");
  static_cast<void>(folder_.write("empty.cubin", ""));
  EXPECT_EQ(refusal("\"k.ptx\"", "\"empty.cubin\""),
            "cubin:manifest.json: /variants/0/module is 'empty.cubin', a file that is empty");
}

#ifdef DCPCHECK_CUBINS
TEST(DeviceCode, ACubinSaysWhatItsKernelsTakeAndEveryTruncationIsRefused) {
  std::ifstream in(DCPCHECK_CUBINS "/fused_eh_norm.cubin", std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(in), {}};
  const auto entries = entries_of(code);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries.at("eh_norm")->bytes, (std::vector<std::int64_t>{32, 32, 8, 8, 1, 8, 8}));
  EXPECT_EQ(entries.at("eh_norm_by_8")->bytes, (std::vector<std::int64_t>{32, 32, 8, 4, 1, 8, 8}));
  for (std::size_t length = 0; length < code.size(); length += length < 64 ? 1 : 97)
    EXPECT_THROW(static_cast<void>(entries_of(code.substr(0, length))), InputError) << length;
  expect_no_harm(code, 7);
}
#endif

}  // namespace
}  // namespace dcpcheck
