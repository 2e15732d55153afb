// models/files/snapshot_io.hpp - reads protobuf messages from binary files, with errors for files that hold
// something else.
#pragma once
#include <filesystem>
#include <string>

namespace google::protobuf {
class Message;
}

namespace poseidon {

/// Fills `message` from a binary file; `what` says in errors what was expected ("weights").
///
/// Errors   spec_error: missing, a folder, empty, HDF5, cut short (with the bytes there and the
///          bytes needed), or something else altogether.
void read_message(const std::filesystem::path& path, const std::string& what,
                  google::protobuf::Message& message);

}  // namespace poseidon
