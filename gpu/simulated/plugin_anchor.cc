// gpu/simulated/plugin_anchor.cc - empty: CMake wants a source; the plug-in is what lies in the library.
