// data/hdf5_source.hpp
//
// HDF5Data: `source` lists HDF5 files, each with one dataset per top, named as the top, the samples
// along its first axis. Values are delivered as they are. With shuffle every epoch has a new order
// of the files, and of the rows within each file, as in Caffe.
#pragma once
#include "data/source.hpp"

namespace poseidon {

/// Reads the header of every file now and its values when they are needed: whole files, of which the
/// last two are kept (Caffe keeps one).
/// Errors   spec_error: no such list or file, a dataset that is missing, has no rows, other rows
///          than its neighbours, or another sample shape than in the first file; transform_param.
[[nodiscard]] std::shared_ptr<const sample_source> open_hdf5(const ::caffe::LayerParameter& layer,
                                                             const spec_position& where,
                                                             const source_options& options);

}  // namespace poseidon
