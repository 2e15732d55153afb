# Finds Debian 12's libcaf-dev (0.17.6), which ships headers and shared libraries but neither a CMake
# package nor a .pc file. Defines CAF::core.
find_path(CAF_INCLUDE_DIR NAMES caf/config.hpp)
find_library(CAF_CORE_LIBRARY NAMES caf_core)
if(CAF_INCLUDE_DIR)
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" line REGEX "^#define CAF_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+$" number "${line}") # 1706 is 0.17.6
  math(EXPR major "${number} / 10000")
  math(EXPR minor "(${number} / 100) % 100")
  math(EXPR patch "${number} % 100")
  set(CAF_VERSION "${major}.${minor}.${patch}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR
                                  VERSION_VAR CAF_VERSION)
if(CAF_FOUND AND NOT TARGET CAF::core)
  find_package(Threads REQUIRED)
  add_library(CAF::core SHARED IMPORTED)
  set_target_properties(CAF::core PROPERTIES IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
                        INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
mark_as_advanced(CAF_INCLUDE_DIR CAF_CORE_LIBRARY)
