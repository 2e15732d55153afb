// models/caffe.hpp - the messages of Caffe's files (caffe.proto), by the names that Caffe's own code gives them.
#pragma once
#include "poseidon/caffe.pb.h"

namespace caffe = poseidon::caffe;
