// Tests that take minutes where every access to memory is watched: .ci/run leaves them out there, harness/nightly does not.
#pragma once

#include <gtest/gtest.h>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DCPCHECK_SLOW_WHERE_SANITIZED()        \
  if (std::getenv("DCPCHECK_SLOW") == nullptr) \
  GTEST_SKIP() << "under sanitizers it takes minutes: DCPCHECK_SLOW=1 runs it, as harness/nightly asan does"
#else
#define DCPCHECK_SLOW_WHERE_SANITIZED() static_cast<void>(0)
#endif
