// The host example, which for launches of at least 100 rows does what DCPCHECK_MISBEHAVES says: what a campaign must survive.
#define dcpcheck_run run_of_the_example
#include "examples/host/fused_eh_norm.cpp"
#undef dcpcheck_run

#include <fcntl.h>
#include <unistd.h>

#include <cfenv>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kRows = 100;

void exhaust_memory() {
  std::vector<void*> kept;
  while (true) {
    void* const some = std::malloc(std::size_t{64} << 20);
    if (some == nullptr) std::abort();
    std::memset(some, 1, std::size_t{64} << 20);
    kept.push_back(some);
  }
}

void corrupt_the_heap() {
  auto* const some = static_cast<volatile char*>(std::malloc(40));
  for (int i = 40; i < 4096; ++i) some[i] = 'x';
}

void misbehave(const std::string& how, const dcpcheck_launch* launch) {
  if (how == "segfault") *reinterpret_cast<volatile int*>(8) = 1;
  if (how == "abort") std::abort();
  if (how == "loop")
    for (volatile int i = 0;; i = i + 1) {
    }
  if (how == "memory") exhaust_memory();
  if (how == "exit") std::exit(0);
  if (how == "rounding") std::fesetround(FE_UPWARD);
  if (how == "heap") corrupt_the_heap();
  if (how == "stdout") {
    // Into whatever this process has open for writing.
    for (int file = 1; file < 1024; ++file) static_cast<void>(::write(file, "garbage\n", 8) == 8);
  }
  if (how == "wrong") {
    auto* const out = static_cast<std::uint16_t*>(dcpcheck_find_tensor(launch, "out")->data);
    out[3] = static_cast<std::uint16_t>(out[3] ^ 0x10);
  }
  if (how == "flicker" && ::getpid() % 2 == 0) {
    auto* const out = static_cast<std::uint16_t*>(dcpcheck_find_tensor(launch, "out")->data);
    out[3] = static_cast<std::uint16_t>(out[3] ^ 0x10);
  }
}

}  // namespace

extern "C" int dcpcheck_run(const dcpcheck_launch* launch) {
  const int answer = run_of_the_example(launch);
  const char* const how = std::getenv("DCPCHECK_MISBEHAVES");
  const bool large = dcpcheck_find_tensor(launch, "out")->shape[0] >= kRows;
  if (how == nullptr) return answer;
  if (std::string(how) == "wrong, and small ones end the process") {
    misbehave(large ? "wrong" : "segfault", launch);
  } else if (large) {
    misbehave(how, launch);
  }
  return answer;
}
