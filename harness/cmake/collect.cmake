# Lists that the build makes from the files it finds, so that adding a file is all there is to adding an op, a fault,
# a verb or a test.

# dcpcheck_library(name [SEPARATE] [PLAIN] [DEPENDS targets…] [SOURCES files…]): a static library of this folder's .cpp files, tests left
# out. SEPARATE: files use one name for different things, so that they are compiled one by one in a unity build, too. PLAIN: no
# run's time goes into it, so that it is optimised as far as compiles quickly.
function(dcpcheck_library name)
  cmake_parse_arguments(ARG "SEPARATE;PLAIN" "" "DEPENDS;SOURCES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  add_library(${name} STATIC ${sources} ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC dcpcheck_options ${ARG_DEPENDS})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  if(ARG_PLAIN)
    target_compile_options(${name} PRIVATE "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")
  endif()
  if(ARG_SEPARATE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
endfunction()

# dcpcheck_tests(name [SEPARATE] [DEPENDS targets…]): one program of this folder's *_test.cpp files, its tests known to ctest.
function(dcpcheck_tests name)
  if(NOT DCPCHECK_TESTS OR name IN_LIST DCPCHECK_WITHOUT)
    return()
  endif()
  cmake_parse_arguments(ARG "SEPARATE" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp")
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock_main)
  if(ARG_SEPARATE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  # What takes time in a test is the libraries' work, and in a build it is the tests: at -O3 they take two to five times as
  # long to compile as here, under sanitizers at -O1 twice.
  target_compile_options(${name} PRIVATE
    "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Og>" "$<$<AND:$<CONFIG:RelWithDebInfo>,$<COMPILE_LANGUAGE:CXX>>:-O0>")
  target_compile_definitions(${name} PRIVATE DCPCHECK_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 900 LABELS ${name})
endfunction()
