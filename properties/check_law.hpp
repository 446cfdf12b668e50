// The one door to what RapidCheck keeps to itself: checking a law with a seed and a number of cases of our choosing, so
// that a run can be repeated and nothing of it comes from the environment.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <sstream>
#include <utility>

namespace dcpcheck {

// Draws `cases` times from the generators that `law` asks with *gen and fails the running test, with the shrunk
// counterexample, where RC_ASSERT does; also where fewer cases were checked (generators that gave up).
template <class Law>
void check_law(std::uint64_t seed, int cases, Law law) {
  rc::detail::TestParams params;
  params.seed = seed;
  params.maxSuccess = cases;
  const auto result = rc::detail::checkTestable(std::move(law), rc::detail::TestMetadata{}, params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  ASSERT_TRUE(result.template is<rc::detail::SuccessResult>()) << message.str();
  EXPECT_EQ(result.template get<rc::detail::SuccessResult>().numSuccess, cases);
}

}  // namespace dcpcheck
