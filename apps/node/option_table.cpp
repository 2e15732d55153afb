#include "apps/node/option_table.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace poseidon::app {

const char* name_of(node_role role) {
  switch (role) {
    case node_role::alone:
      return "alone";
    case node_role::first:
      return "first";
    case node_role::joiner:
      return "joiner";
    case node_role::witness:
      return "witness";
  }
  return "";
}

const char* name_of(option_use use) {
  switch (use) {
    case option_use::taken:
      return "taken";
    case option_use::idle:
      return "idle";
    case option_use::refused:
      return "refused";
  }
  return "";
}

const char* name_of(option_owner owner) {
  switch (owner) {
    case option_owner::everyone:
      return "every node";
    case option_owner::members:
      return "every node, of several";
    case option_owner::trainers:
      return "nodes that train";
    case option_owner::trainers_of_several:
      return "nodes that train, of several";
    case option_owner::first_node:
    case option_owner::reader_of_all_outputs:
      return "first node";
    case option_owner::first_of_several:
      return "first node, of several";
  }
  return "";
}

option_use use_of(option_owner owner, node_role role) {
  using enum option_owner;
  const bool of_several =
      owner == members || owner == trainers_of_several || owner == first_of_several;
  const bool of_first =
      owner == first_node || owner == first_of_several || owner == reader_of_all_outputs;
  switch (role) {
    case node_role::alone:
      return of_several ? option_use::idle : option_use::taken;
    case node_role::first:
      return option_use::taken;
    case node_role::joiner:
      return of_first ? option_use::refused : option_use::taken;
    case node_role::witness:
      return owner == everyone || owner == members ? option_use::taken : option_use::refused;
  }
  return option_use::refused;
}

const char* heading_of(option_group group) {
  switch (group) {
    case option_group::training:
      return "What is trained";
    case option_group::data:
      return "Data";
    case option_group::devices:
      return "Devices";
    case option_group::cluster:
      return "Cluster";
    case option_group::values:
      return "How values travel";
    case option_group::display:
      return "What is seen of a run";
    case option_group::caffe:
      return "As in Caffe";
    case option_group::tests:
      return "";
  }
  return "";
}

std::string_view name_of(const option_row& row) {
  const std::string_view names = row.names;
  return names.substr(0, names.find(','));
}

std::span<const option_row> option_rows() {
  static const auto all = [] {
    std::vector<option_row> rows;
    for (const auto part : {rows::of_training(), rows::of_clusters(), rows::of_display()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return all;
}

const option_row& row_of(std::string_view name) {
  const auto rows = option_rows();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [name](const auto& r) { return name_of(r) == name; });
  if (row == rows.end()) throw std::logic_error("the table of options has no " + std::string(name));
  return *row;
}

}  // namespace poseidon::app
