#include "harness/adapters/exchange.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "harness/core/error.hpp"

namespace dcpcheck {
namespace {

constexpr std::int64_t kGuard = 4096;     // as the least one of an arena
constexpr std::int64_t kAlignment = 256;  // as cudaMalloc gives

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

ExchangeLayout exchange_layout(const Launch& launch) {
  ExchangeLayout layout;
  const auto arena = static_cast<std::int64_t>(launch.arena.size());
  layout.pieces.push_back({"", launch.arena.data(), arena, 0});
  std::int64_t at = aligned(arena) + kGuard;
  for (const TensorPlan& tensor : launch.plan.tensors) {
    const auto found = launch.tensors.find(tensor.name);
    if (found == launch.tensors.end()) throw HarnessError("a launch came without its tensor " + tensor.name);
    auto* const data = static_cast<std::byte*>(found->second.data);
    const std::less<> before;
    if (!before(data, launch.arena.data()) && before(data, launch.arena.data() + arena)) {
      layout.offsets[tensor.name] = data - launch.arena.data();
      continue;
    }
    if (tensor.role != Role::in) throw HarnessError(tensor.name + " does not lie in its launch's arena");
    const std::int64_t first = tensor.offset * size_of(tensor.dtype);
    layout.pieces.push_back({tensor.name, data - first, tensor.bytes(), at});
    layout.offsets[tensor.name] = at + first;
    at = aligned(at + tensor.bytes()) + kGuard;
  }
  layout.bytes = at;
  return layout;
}

SharedMemory::SharedMemory() : file_(::memfd_create("dcpcheck", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (file_.get() < 0) throw_errno("memfd_create");
  // A process that made it shorter would take this one down, where it reads past the new end.
  if (::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) throw_errno("fcntl(F_ADD_SEALS)");
}

SharedMemory::~SharedMemory() { unmap(); }

void SharedMemory::unmap() {
  // munmap of a mapping that mmap gave cannot fail; a destructor could not say so anyhow.
  if (mapping_ != nullptr) ::munmap(mapping_, static_cast<std::size_t>(bytes_));
  mapping_ = nullptr;
}

void SharedMemory::reserve(std::int64_t bytes) {
  if (bytes <= bytes_) return;
  // By half as much again, so that cases which grow by and by do not each map it anew.
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const std::int64_t wanted = (std::max(bytes, bytes_ + bytes_ / 2) + page - 1) / page * page;
  unmap();
  if (::ftruncate(file_.get(), wanted) != 0) throw_errno("ftruncate of shared memory to " + std::to_string(wanted) + " bytes");
  void* const mapping = ::mmap(nullptr, static_cast<std::size_t>(wanted), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapping == MAP_FAILED) throw_errno("mmap of " + std::to_string(wanted) + " bytes");
  mapping_ = static_cast<std::byte*>(mapping);
  bytes_ = wanted;
}

void bring(const ExchangeLayout& layout, std::byte* base, bool on_device, std::byte guard, const Mover& mover) {
  const std::int64_t arena = layout.pieces.front().bytes;
  mover.fill(base + arena, guard, layout.bytes - arena, on_device);
  for (const ExchangeLayout::Piece& piece : layout.pieces) mover.copy(base + piece.offset, piece.address, piece.bytes);
  mover.wait();
}

std::string fetch(const ExchangeLayout& layout, const std::byte* base, std::byte guard, const Mover& mover) {
  // After each piece, up to the next one or the end.
  struct Gap {
    std::int64_t from = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Gap> gaps;
  for (std::size_t i = 0; i < layout.pieces.size(); ++i) {
    const ExchangeLayout::Piece& piece = layout.pieces[i];
    mover.copy(piece.address, base + piece.offset, piece.bytes);
    const std::int64_t from = piece.offset + piece.bytes;
    const std::int64_t to = i + 1 < layout.pieces.size() ? layout.pieces[i + 1].offset : layout.bytes;
    gaps.push_back({from, std::vector<std::byte>(static_cast<std::size_t>(to - from))});
    mover.copy(gaps.back().bytes.data(), base + from, to - from);
  }
  mover.wait();
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const std::vector<std::byte>& bytes = gaps[i].bytes;
    const auto is_other = [&](std::byte byte) { return byte != guard; };
    const auto first = std::find_if(bytes.begin(), bytes.end(), is_other);
    if (first == bytes.end()) continue;
    const std::string count = std::to_string(std::count_if(first, bytes.end(), is_other));
    // The nearer one is the one that was meant.
    const std::int64_t past = first - bytes.begin(), before = bytes.end() - first;
    const bool of_next = i + 1 < gaps.size() && (i == 0 || before < past);
    if (i == 0 && !of_next) return "it wrote " + count + " bytes past the end of the launch's memory";
    return "it wrote " + count + " bytes next to the input " + layout.pieces[i + (of_next ? 1 : 0)].name + ", the first " +
           (of_next ? std::to_string(before) + " bytes before its start" : std::to_string(past) + " bytes past its end");
  }
  return "";
}

}  // namespace dcpcheck
