#include "harness/memory/sparse_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

// Adds what was touched of bytes [begin, end), no window's, page by page. Where the system's pages are larger than ours, a
// window's page is larger than the window, and only what is written shows.
void add_pages(const SparseMemory& memory, const std::string& buffer, std::int64_t begin, std::int64_t end,
               std::vector<Touched>& found) {
  const bool fine = ::sysconf(_SC_PAGESIZE) <= kWindowPage;
  for (std::int64_t page = begin; page < end; page += kWindowPage) {
    Touched touched{buffer, page, 0, {}, 0};
    for (std::int64_t byte = page; byte < std::min(page + kWindowPage, end); ++byte) {
      const std::byte value = memory.data()[byte];
      if (value != std::byte{} && touched.bytes++ == 0) {
        touched.byte = byte;
        touched.value = value;
      }
    }
    if (touched.bytes > 0 || fine) found.push_back(std::move(touched));
  }
}

}  // namespace

// A file without a name: what of it is a hole nobody has touched, and the kernel tells holes at once, however large.
SparseMemory::SparseMemory(const ArenaBuffer& buffer)
    : buffer_(&buffer), file_(::memfd_create("dcpcheck sparse", MFD_CLOEXEC)) {
  if (file_ < 0) throw_errno("memfd_create");
  const auto bytes = static_cast<std::size_t>(mapped());
  void* mapping = MAP_FAILED;
  if (::ftruncate(file_, mapped()) == 0) {
    mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  }
  if (mapping == MAP_FAILED) {
    const int error = errno;
    ::close(file_);
    errno = error;
    throw_errno("mapping of " + std::to_string(bytes) + " bytes for " + buffer.name);
  }
  mapping_ = static_cast<std::byte*>(mapping);
  // A huge page would hold memory that nobody touched. A system that has none refuses, and needs no telling.
  static_cast<void>(::madvise(mapping_, bytes, MADV_NOHUGEPAGE));
}

SparseMemory::~SparseMemory() {
  if (mapping_ == nullptr) return;
  ::munmap(mapping_, static_cast<std::size_t>(mapped()));
  ::close(file_);
}

SparseMemory::SparseMemory(SparseMemory&& other) noexcept
    : buffer_(other.buffer_), file_(std::exchange(other.file_, -1)), mapping_(std::exchange(other.mapping_, nullptr)) {}

void SparseMemory::bring(std::span<const std::byte> image) {
  for (const Window& window : buffer_->windows) {
    std::memcpy(data() + window.begin, image.data() + window.offset, static_cast<std::size_t>(window.end - window.begin));
  }
}

void SparseMemory::fetch(std::span<std::byte> image) const {
  for (const Window& window : buffer_->windows) {
    std::memcpy(image.data() + window.offset, data() + window.begin, static_cast<std::size_t>(window.end - window.begin));
  }
}

std::vector<Touched> SparseMemory::touched() const {
  std::vector<Touched> found;
  const std::int64_t before = buffer_->before;
  for (std::int64_t hole = 0; hole < mapped();) {
    const std::int64_t data = ::lseek(file_, hole, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // holes up to the end
    if (data >= 0) hole = ::lseek(file_, data, SEEK_HOLE);
    if (data < 0 || hole < 0) throw_errno("lseek in the memory of " + buffer_->name);
    std::int64_t at = data - before;
    buffer_->each_part(data - before, hole - before, [&](std::int64_t begin, std::int64_t end) {
      add_pages(*this, buffer_->name, at, begin, found);
      at = end;
    });
    add_pages(*this, buffer_->name, at, hole - before, found);
  }
  return found;
}

}  // namespace dcpcheck
