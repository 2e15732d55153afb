# The Debian packages, which tools/package has CPack make: `poseidon`, and `poseidon-gpu` where the plug-in is built. What
# libraries they depend on, and since which version, dpkg-shlibdeps finds out. CUDA's libraries are not in Debian's main: a
# package of it cannot depend on them, and whoever has a GPU may have them from NVIDIA's packages or from an archive.
set(POSEIDON_PACKAGE_CONTACT "Poseidon's maintainers <maintainers@poseidon.invalid>" CACHE STRING
    "Who is named as the maintainer of the Debian packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME poseidon)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${POSEIDON_PACKAGE_CONTACT}")
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON) # the unit names the program where it will lie, not where it is packed
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL poseidon)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Packages of each release have a version of their own, older than that of the next release: an upgrade of the system takes the next one's. Testing,
# whose os-release has no number, has none.
cmake_host_system_information(RESULT system_id QUERY DISTRIB_ID)
cmake_host_system_information(RESULT system_number QUERY DISTRIB_VERSION_ID)
set(POSEIDON_PACKAGE_RELEASE 1)
if(system_id STREQUAL "debian" AND system_number)
  set(POSEIDON_PACKAGE_RELEASE 1~deb${system_number})
endif()
set(CPACK_DEBIAN_PACKAGE_RELEASE ${POSEIDON_PACKAGE_RELEASE})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_POSEIDON_PACKAGE_NAME poseidon)
set(CPACK_DEBIAN_POSEIDON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_POSEIDON_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/debian/postinst ${CMAKE_SOURCE_DIR}/cmake/debian/postrm)
set(CPACK_DEBIAN_POSEIDON_PACKAGE_SUGGESTS "graphviz, openssl, poseidon-gpu")
set(CPACK_COMPONENT_POSEIDON_DESCRIPTION "train deep networks on clusters of ordinary machines
Poseidon reads Caffe's files unchanged (prototxt, solver, caffemodel,
Datum LMDBs) and trains the net on one machine, or on several over ordinary
Ethernet: gradients of a layer are sent while the layers below it still
compute. It shows a run in a browser.
.
This package has the programs, the nets, a systemd unit and the documents.")
if(TARGET poseidon_gpu)
  list(APPEND CPACK_COMPONENTS_ALL gpu)
  set(CPACK_DEBIAN_GPU_PACKAGE_NAME poseidon-gpu)
  set(CPACK_DEBIAN_GPU_PACKAGE_SHLIBDEPS OFF) # it fails on libraries that no package has
  set(CPACK_DEBIAN_GPU_PACKAGE_DEPENDS "poseidon (= ${PROJECT_VERSION}-${POSEIDON_PACKAGE_RELEASE}), libc6, libgcc-s1, libstdc++6")
  set(CPACK_DEBIAN_GPU_PACKAGE_SUGGESTS
      "libcublas-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR}, libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}")
  set(CPACK_COMPONENT_GPU_DESCRIPTION "train deep networks on clusters of ordinary machines - NVIDIA GPUs
The plug-in with which poseidon-node computes on NVIDIA GPUs. It needs
NVIDIA's driver, cuBLAS of CUDA ${CUDAToolkit_VERSION_MAJOR} and cuDNN 9, which are not part of Debian.
Where they are missing, poseidon-node --devices 0 says so, and CPUs train as
before.")
endif()
include(CPack)
