// apps/tls_options.hpp - --tls-cert, --tls-key and --tls-ca, as every program and verb that dials or listens takes them.
#pragma once
#include "messages/wire/tls_context.hpp"

#include <CLI/CLI.hpp>

namespace poseidon::app {

/// For a program or verb that takes part in a run, or asks a node to leave it: tls_of_links() reads them.
inline void add_tls_options(CLI::App& app, tls_files& files) {
  app.add_option(
      "--tls-cert", files.certificate,
      "PEM file with this node's certificate: connections are encrypted, on all nodes or "
      "none");
  app.add_option("--tls-key", files.key, "PEM file with the key of --tls-cert");
  app.add_option("--tls-ca", files.authority,
                 "PEM file with the authority that has signed every node's --tls-cert");
}

/// For a verb that asks the page of a node: tls_of_reader() reads them.
inline void add_tls_reader_options(CLI::App& app, tls_files& files) {
  app.add_option("--tls-ca", files.authority,
                 "PEM file with the authority of the nodes' --tls-cert, if they have TLS");
  app.add_option("--tls-cert", files.certificate, "not needed: the page asks for no certificate");
  app.add_option("--tls-key", files.key, "not needed, as --tls-cert");
}

}  // namespace poseidon::app
