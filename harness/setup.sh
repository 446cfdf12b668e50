# shellcheck shell=bash disable=SC2034
# Sourced by harness/run, harness/test, harness/nightly and .ci/run: gets what the build needs, configures, builds.
# Everything here prints to stderr alone.

# The root, from this file's own place; CDPATH would make cd print.
root=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)
self=$(readlink -f -- "$0")
self=${self#"$root/"}

# package=what shows that it is there: a command, or a file. Looked up at each call, so this must stay cheap.
packages=(
  "g++=g++"
  "cmake=cmake"
  "git=git"
  "ninja-build=ninja"
  "libssl-dev=/usr/include/openssl/evp.h"
  "nlohmann-json3-dev=/usr/include/nlohmann/json.hpp"
  "libcli11-dev=/usr/include/CLI/CLI.hpp"
  "librandom123-dev=/usr/include/Random123/philox.h"
  "libgtest-dev=/usr/include/gtest/gtest.h"
  "libgmock-dev=/usr/include/gmock/gmock.h"
  "librapidcheck-dev=/usr/include/rapidcheck.h"
  "libvalijson-dev=/usr/include/valijson/validator.hpp"
  "python3=python3"
)
nightly_packages=(
  "clang=clang++"
  "clang-tidy=clang-tidy"
)

say() { printf '%s: %s\n' "$self" "$*" >&2; }

# quietly LOG COMMAND…: the output goes to LOG, and is shown where the command fails.
quietly() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null || {
    local status=$?
    cat -- "$log" >&2
    return $status
  }
}

# ensure_packages PACKAGE=PROBE…: installs with apt what is missing.
ensure_packages() {
  local entry probe missing=() as_root=()
  for entry in "$@"; do
    probe=${entry#*=}
    [[ $probe == /* && -e $probe ]] || command -v -- "$probe" >/dev/null || missing+=("${entry%%=*}")
  done
  ((${#missing[@]})) || return 0

  if ((EUID != 0)); then
    # sudo that would ask for a password is of use only where there is somebody to ask.
    if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then as_root=(sudo); fi
  fi
  if ! command -v apt-get >/dev/null || ((EUID != 0 && ${#as_root[@]} == 0)); then
    say "these packages (Debian's names) are missing and cannot be installed from here, so install them first: ${missing[*]}"
    exit 2
  fi
  say "installing with apt: ${missing[*]}"
  local log apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=120)
  log=$(mktemp)
  if ! quietly "$log" "${as_root[@]}" "${apt[@]}" update ||
    ! quietly "$log" "${as_root[@]}" "${apt[@]}" install --no-install-recommends "${missing[@]}"; then
    rm -f -- "$log"
    say "apt could not install ${missing[*]}: see its words above"
    exit 2
  fi
  rm -f -- "$log"
}

# Where nvcc is: harness/cmake/options.cmake looks in the same two places.
find_nvcc() { command -v nvcc || { [[ -x /usr/local/cuda/bin/nvcc ]] && echo /usr/local/cuda/bin/nvcc; }; }

# DCPCHECK_CONFIGURE has further options for cmake.
# build PRESET [ARGS of cmake --build…]: brings build/PRESET up to date, and prints nothing where it already is.
build() {
  local preset=$1 directory=$root/build/$1
  shift
  mkdir -p -- "$directory"
  (
    flock 9  # two builds at once in one folder would overwrite each other
    start=$SECONDS
    # Ninja runs CMake again when a CMakeLists.txt or a globbed folder changes, but not for these two.
    key=$(cat -- "$root/CMakePresets.json"; find_nvcc || :)
    if [[ ! -f $directory/build.ninja || $key != "$(cat -- "$directory/configured" 2>/dev/null)" ]]; then
      say "building build/$preset: the first time takes some minutes"
      # Not quoted: options of cmake, one word each.
      # shellcheck disable=SC2086
      quietly "$directory/configure.log" cmake --fresh -S "$root" --preset "$preset" ${DCPCHECK_CONFIGURE:-}
      grep -o 'No nvcc.*' -- "$directory/configure.log" >&2 || :
      printf '%s\n' "$key" >"$directory/configured"
    fi
    quietly "$directory/build.log" cmake --build "$directory" "$@"
    # The revision is looked up each time; it is a build only where something was compiled or linked.
    grep -qE 'Building|Linking' -- "$directory/build.log" && say "built build/$preset in $((SECONDS - start)) s"
    true
  ) 9>"$directory/lock" >&2
}

# run_tests PRESET [ARGS of ctest…]
run_tests() {
  local preset=$1
  shift
  (CDPATH='' cd -- "$root" && ctest --preset "$preset" "$@")
}
