# cmake -D BUILD=… -D SOURCE=… -D CXX=… -D GENERATOR=… -D MAKE_PROGRAM=… -P install_test.cmake: installs BUILD, builds the
# example project against what was installed, far from the sources, and has that judge its kernel.
set(work "${BUILD}/install-test")
file(REMOVE_RECURSE "${work}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${code}:\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

function(must_say pattern)
  if(NOT out MATCHES "${pattern}")
    message(FATAL_ERROR "'${pattern}' was expected, not:\n${out}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${work}/prefix")
file(COPY "${SOURCE}/harness/adapters/examples/consumer/" "${SOURCE}/harness/adapters/examples/host/fused_eh_norm.cpp"
     "${SOURCE}/corpora/kernel-matrix/eh-norm-17.json" DESTINATION "${work}/consumer")
# With what BUILD itself was made by: make may be missing here.
run("${CMAKE_COMMAND}" -S "${work}/consumer" -B "${work}/build" -G "${GENERATOR}" "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}"
    "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DCMAKE_CXX_COMPILER=${CXX}")
run("${CMAKE_COMMAND}" --build "${work}/build")
run("${CMAKE_CTEST_COMMAND}" --test-dir "${work}/build" --output-on-failure)
must_say("100% tests passed, 0 tests failed out of 1")

# The installed documents are there, and of this program.
file(READ "${work}/prefix/share/man/man1/dcpcheck.1" out)
must_say("\\.SS bisect")
must_say("\\.SH EXIT STATUS")
if(out MATCHES "[^\t\n -~]")
  message(FATAL_ERROR "the manual page has letters that not every roff reads")
endif()
foreach(file share/dcpcheck/schema/report.schema.json share/dcpcheck/adapters/python/pyproject.toml
        share/dcpcheck/adapters/triton/export.py share/dcpcheck/adapters/PROTOCOL.md)
  if(NOT EXISTS "${work}/prefix/${file}")
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

find_program(bash bash)
if(bash)
  set(completion "${work}/prefix/share/bash-completion/completions/dcpcheck")
  function(completes words expected)
    execute_process(COMMAND "${bash}" -c "source '${completion}'; COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _dcpcheck; echo \"<\${COMPREPLY[*]}>\""
                    OUTPUT_VARIABLE out ERROR_VARIABLE out)
    must_say("<${expected}>")
  endfunction()
  completes("dcpcheck fu" "fuzz")
  completes("dcpcheck run --backend h" "host")
  completes("dcpcheck golden ver" "verify")
  completes("dcpcheck bisect --buil" "--build --build-limit")
  completes("dcpcheck run --json r" "")
  completes("dcpcheck no-such-verb" "")
endif()
file(REMOVE_RECURSE "${work}")
