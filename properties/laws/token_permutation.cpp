#include <algorithm>

#include "harness/core/philox.hpp"
#include "properties/laws/relaunch.hpp"

namespace dcpcheck::laws {
namespace {

LawFindings check_token_permutation(Trial& trial) {
  const std::int64_t live = trial.plan().live;
  if (live < 2) return silent("there are under 2 tokens");
  Relaunches relaunches("token_permutation", trial);
  if (!relaunches.begin()) return relaunches.findings();
  std::vector<std::int64_t> rows = rows_from(0, live);
  std::reverse(rows.begin(), rows.end());
  relaunches.add([&]() -> Relaunch { return {permute(trial.setting(), rows), rows, "with the tokens in reverse"}; });
  Draw draw(live);
  const Stream stream(trial.value().seed, "token permutation");
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = draw.next(stream.word(i));
  relaunches.add([&]() -> Relaunch { return {permute(trial.setting(), rows), rows, "with the tokens in another order"}; });
  return relaunches.findings();
}

}  // namespace

Law token_permutation() {
  return {"token_permutation", "A token gets the same rows wherever in the launch it stands.", false, check_token_permutation};
}

}  // namespace dcpcheck::laws
