# What `cmake --install` puts where, below the prefix that it is given (DESTDIR works too): two components, `poseidon` and
# `gpu`, which are the Debian packages of cmake/PoseidonPackage.cmake. The plug-ins lie in lib/poseidon, where
# apps/plugin and models/files/hdf5_open.cpp look beside bin/. Libraries are the system's: installed programs have no path to any.
include(GNUInstallDirs)
find_package(Python3 COMPONENTS Interpreter)
set(plugins lib/poseidon)
set(documents ${CMAKE_INSTALL_DATAROOTDIR}/doc/poseidon)
set(changelog ${CMAKE_BINARY_DIR}/changelog.Debian.gz)
execute_process(COMMAND gzip --best --no-name --stdout ${CMAKE_SOURCE_DIR}/cmake/debian/changelog OUTPUT_FILE ${changelog})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cmake/debian/changelog)

# All that is built for an installation, and nothing else: tools/package builds this target.
add_custom_target(poseidon_installed)
function(install_built)
  install(TARGETS ${ARGN})
  add_dependencies(poseidon_installed ${ARGV0})
endfunction()

install_built(poseidon-node RUNTIME DESTINATION bin COMPONENT poseidon)
install_built(poseidon-graph RUNTIME DESTINATION bin COMPONENT poseidon)
install_built(poseidon-data RUNTIME DESTINATION bin COMPONENT poseidon)
install_built(poseidon_gpu_simulated_plugin LIBRARY DESTINATION ${plugins} COMPONENT poseidon)
install_built(poseidon_hdf5 LIBRARY DESTINATION ${plugins} COMPONENT poseidon)
install_built(poseidon LIBRARY DESTINATION lib COMPONENT poseidon)
install(FILES apps/library/poseidon.h DESTINATION include COMPONENT poseidon)
install(DIRECTORY apps/python/poseidon DESTINATION lib/python3/dist-packages COMPONENT poseidon PATTERN __pycache__ EXCLUDE)
set(launcher tools/launch/local tools/launch/host_file.py tools/launch/remote_node.py tools/launch/script_run.py tools/launch/ssh_run.py
    tools/launch/worker_agent.py) # for python3 -m poseidon.launch
install(FILES ${launcher} DESTINATION lib/python3/dist-packages/poseidon/launcher COMPONENT poseidon)
install(DIRECTORY models/zoo DESTINATION ${CMAKE_INSTALL_DATADIR}/poseidon/models COMPONENT poseidon)
install(FILES README.md CHANGELOG.md cmake/debian/copyright ${changelog} DESTINATION ${documents}
        COMPONENT poseidon)
install(DIRECTORY docs DESTINATION ${documents} COMPONENT poseidon)
install(DIRECTORY tools/launch DESTINATION ${documents}/examples COMPONENT poseidon USE_SOURCE_PERMISSIONS
        PATTERN __pycache__ EXCLUDE)
if(TARGET poseidon_gpu)
  install_built(poseidon_gpu LIBRARY DESTINATION ${plugins} COMPONENT gpu)
  install(FILES cmake/debian/copyright ${changelog} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/poseidon-gpu COMPONENT gpu)
endif()

# Written when it is installed, because the prefix may be named only then: the manual pages and completions from what the
# programs say with --help, and the unit with the path of the program.
install(CODE "
  set(made \"${CMAKE_BINARY_DIR}/installed\")
  file(REMOVE_RECURSE \${made})
  execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${CMAKE_SOURCE_DIR}/tools/manual\" --gzip --version ${PROJECT_VERSION}
                          --bin \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\" --out \${made} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR \"the manual pages cannot be written (above): are Python 3 and the programs there?\")
  endif()
  file(READ \"${CMAKE_SOURCE_DIR}/tools/launch/poseidon-node@.service\" unit)
  string(REPLACE /usr/local/bin/ \${CMAKE_INSTALL_PREFIX}/bin/ unit \"\${unit}\")
  file(WRITE \${made}/poseidon-node@.service \"\${unit}\")
  " COMPONENT poseidon)
set(made ${CMAKE_BINARY_DIR}/installed)
install(DIRECTORY ${made}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT poseidon)
install(DIRECTORY ${made}/completions DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion COMPONENT poseidon)
install(FILES ${made}/poseidon-node@.service tools/launch/poseidon-script@.service DESTINATION lib/systemd/system COMPONENT poseidon)
include(PoseidonPackage)
