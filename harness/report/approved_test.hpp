// Approved outputs: reports/baselines.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace dcpcheck {

// Compares with reports/baselines/<name>. DCPCHECK_APPROVE=1 writes the file instead: look at the difference, commit it.
inline void expect_approved(const std::string& name, const std::string& text) {
  const std::string path = std::string(DCPCHECK_SOURCE_DIR) + "/reports/baselines/" + name;
  if (std::getenv("DCPCHECK_APPROVE") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream approved;
  approved << file.rdbuf();
  EXPECT_EQ(text, approved.str()) << path << " is the approved output; DCPCHECK_APPROVE=1 takes the new one";
}

}  // namespace dcpcheck
