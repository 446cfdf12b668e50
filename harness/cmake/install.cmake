# cmake --install: the program, what kernels are written against, and what a person reads. Other projects find it by
# find_package(dcpcheck), with dcpcheck::kernel (the header of kernels in libraries) and dcpcheck::dcpcheck (the program).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(dcpcheck_kernel INTERFACE)
set_target_properties(dcpcheck_kernel PROPERTIES EXPORT_NAME kernel)
target_include_directories(dcpcheck_kernel INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/dcpcheck")
set(data "${CMAKE_INSTALL_DATADIR}/dcpcheck")
install(TARGETS dcpcheck dcpcheck_kernel EXPORT dcpcheck RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(EXPORT dcpcheck NAMESPACE dcpcheck:: FILE dcpcheckConfig.cmake DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/dcpcheckConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/dcpcheckConfigVersion.cmake" DESTINATION "${package}")
if(DCPCHECK_PORTABLE)
  install(FILES "${crypto}" DESTINATION "${CMAKE_INSTALL_BINDIR}")
  set_target_properties(dcpcheck PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()

install(FILES harness/adapters/dcpcheck_kernel.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY reports/schema/ DESTINATION "${data}/schema" FILES_MATCHING PATTERN "*.schema.json" PATTERN "*.xsd" PATTERN "README.md")
install(DIRECTORY harness/adapters/python harness/adapters/triton harness/adapters/examples DESTINATION "${data}/adapters"
  PATTERN "__pycache__" EXCLUDE PATTERN "tests" EXCLUDE PATTERN "*_test.py" EXCLUDE)
install(FILES harness/adapters/PROTOCOL.md harness/adapters/manifest.md DESTINATION "${data}/adapters")
install(FILES README.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${CMAKE_BINARY_DIR}/harness/commands/dcpcheck.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${CMAKE_BINARY_DIR}/harness/commands/dcpcheck.bash"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME dcpcheck)

if(DCPCHECK_TESTS AND NOT DCPCHECK_SANITIZE)
  add_test(NAME install_is_found_by_another_project
    COMMAND "${CMAKE_COMMAND}" -D "BUILD=${CMAKE_BINARY_DIR}" -D "SOURCE=${CMAKE_SOURCE_DIR}" -D "CXX=${CMAKE_CXX_COMPILER}"
            -D "GENERATOR=${CMAKE_GENERATOR}" -D "MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}"
            -P "${CMAKE_CURRENT_LIST_DIR}/install_test.cmake")
  set_tests_properties(install_is_found_by_another_project PROPERTIES TIMEOUT 300 LABELS commands_test)
endif()
