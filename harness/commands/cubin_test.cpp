// --kernel cubin:FILE: kernels that a manifest describes, as a person runs them on a machine that need not have a GPU.
#include <gmock/gmock.h>

#include "harness/commands/program_test.hpp"

namespace dcpcheck {
namespace {

// Lines are wrapped where the folder's name, which has a process's number in it, puts their end.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text)
    if ((c != ' ' && c != '\n') || !line.ends_with(' ')) line += c == '\n' ? ' ' : c;
  return line;
}

using testing::HasSubstr;
using testing::IsEmpty;

class Cubin : public Program {
 protected:
  // A manifest, and PTX of a kernel that does nothing.
  std::string manifest(const std::string& entry = "k") const {
    static_cast<void>(
        file("k.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 x)\n{\n\tret;\n}\n"));
    return file("manifest.json",
                R"({"schema": "dcpcheck.manifest/1", "op": "fused_eh_norm", "name": "idle", "doc": "Does nothing.",
"contract": {"norm_round": ["none", "bf16"]}, "requirements": [{"that": "hidden_size % 8 == 0", "say": "whole vectors"}],
"variants": [{"name": "all", "module": "k.ptx", "entry": ")" +
                    entry + R"(", "grid": ["T"], "block": [32],
"parameters": [{"bind": "address", "tensor": "out"}]}]})");
  }
  std::string eh_norm() const {
    return file("eh-norm.json", R"({"schema": "dcpcheck.case/1", "name": "eh-norm", "source": "a test", "case": {
"op": "fused_eh_norm", "seed": "0000000000000001", "geometry": {"batch": [{"uncached": 5}]}, "params": {"hidden_size": 64}}})");
  }
};

TEST_F(Cubin, WhatItDeclaresIsShown) {
  const Ended ended = run({"kernels", "cubin:" + manifest()});
  EXPECT_EQ(ended.code, 0) << ended.err;
#if defined(DCPCHECK_HAVE_CUDA)
  EXPECT_THAT(ended.out, HasSubstr("idle: fused_eh_norm, cuda"));
#else
  EXPECT_THAT(ended.out, HasSubstr("idle: fused_eh_norm, no backend of this build"));
#endif
  EXPECT_THAT(ended.out, HasSubstr("Contract option norm_round: none and bf16"));
  EXPECT_THAT(ended.out, HasSubstr("Requires hidden_size % 8 == 0 (whole vectors)"));
}

TEST_F(Cubin, OnTheHostItIsSkippedWithTheReason) {
  const std::string spec = "cubin:" + manifest();
  const Ended ended = run({"run", "--backend", "host", "--kernel", spec, eh_norm()});
  EXPECT_EQ(ended.code, 77) << ended.out << ended.err;
  EXPECT_THAT(on_one_line(ended.out), HasSubstr("cannot run on the host backend"));
}

TEST_F(Cubin, ADefectIsTwoAndOneSentence) {
  const std::string spec = "cubin:" + manifest("kk");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "--backend", "host", "--kernel", spec, eh_norm()}, {"kernels", spec}}) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.err,
              "dcpcheck: " + spec + ": /variants/0/entry is 'kk', a kernel that k.ptx does not have: did you mean k?\n");
    EXPECT_THAT(ended.out, IsEmpty());
  }
  EXPECT_EQ(run({"kernels", "cubin:" + path("none.json")}).err,
            "dcpcheck: " + path("none.json") + ": cannot be opened: No such file or directory\n");
}

}  // namespace
}  // namespace dcpcheck
