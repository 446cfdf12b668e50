// For tests: manifests that are written where a test runs, beside PTX that no GPU is needed to look into.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace dcpcheck {

// A folder of its own, gone with the test.
class ManifestFolder {
 public:
  ManifestFolder()
      : path_(std::filesystem::temp_directory_path() / ("dcpcheck-manifest-test-" + std::to_string(::getpid()) + "-" +
                                                        std::to_string(reinterpret_cast<std::uintptr_t>(this)))) {
    std::filesystem::create_directories(path_);
  }
  ~ManifestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ManifestFolder(const ManifestFolder&) = delete;
  ManifestFolder& operator=(const ManifestFolder&) = delete;

  // The path of the file called so, which holds `bytes` now.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::string path = (path_ / name).string();
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << bytes;
    out.close();
    if (!out) throw std::runtime_error(path + " cannot be written");
    return path;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// PTX with one kernel, called "k", with these parameters: ".param .u64 a, .param .u32 b".
inline std::string ptx_with(const std::string& parameters) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n\n// a kernel that does nothing\n.visible .entry k(" + parameters +
         ")\n{\n\tret;\n}\n";
}

}  // namespace dcpcheck
