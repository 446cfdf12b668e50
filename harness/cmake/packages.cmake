# What the build needs from outside, each with the Debian package that has it. Nothing is fetched.
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)  # libssl-dev
find_package(nlohmann_json 3.11 REQUIRED)           # nlohmann-json3-dev
find_package(CLI11 2 REQUIRED)                      # libcli11-dev
find_path(RANDOM123_INCLUDE Random123/philox.h)     # librandom123-dev
if(NOT RANDOM123_INCLUDE)
  message(FATAL_ERROR "Random123/philox.h not found: install librandom123-dev")
endif()
add_library(random123 INTERFACE)
target_include_directories(random123 SYSTEM INTERFACE "${RANDOM123_INCLUDE}")

if(DCPCHECK_PORTABLE)
  # libcrypto.so is a link to the file that has the soname, which is what programs ask for.
  file(REAL_PATH "${OPENSSL_CRYPTO_LIBRARY}" crypto)
  file(COPY "${crypto}" DESTINATION "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
endif()

if(DCPCHECK_TESTS)
  find_package(GTest REQUIRED)       # libgtest-dev, libgmock-dev
  find_package(rapidcheck REQUIRED)  # librapidcheck-dev
  find_path(VALIJSON_INCLUDE valijson/validator.hpp REQUIRED)  # libvalijson-dev
  add_library(valijson INTERFACE)
  target_include_directories(valijson SYSTEM INTERFACE "${VALIJSON_INCLUDE}")
  include(GoogleTest)
endif()
