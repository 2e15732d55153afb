#include "data/convert.hpp"

#include "data/image_store.hpp"
#include "data/lmdb_writer.hpp"

#include <cstdio>
#include <string>

#include "caffe.pb.h"

namespace poseidon {

void convert(const image_store& images, const std::filesystem::path& folder,
             const convert_options& options) {
  const auto& s = images.image_shape();
  const auto record_bytes = static_cast<std::uint64_t>(count(s)) * 5 + 64;  // float_data at worst
  lmdb_writer writer(folder, images.size(), images.size() * record_bytes, options.replace);
  ::caffe::Datum d;
  d.set_channels(static_cast<std::int32_t>(s[0]));
  d.set_height(static_cast<std::int32_t>(s[1]));
  d.set_width(static_cast<std::int32_t>(s[2]));
  std::vector<float> scratch;
  std::string record;
  for (std::uint64_t n = 0; n < images.size(); ++n) {
    const auto one = images.get(n, scratch);
    d.set_label(one.label);
    if (one.floats.empty())
      d.set_data(one.bytes.data(), one.bytes.size());
    else
      d.mutable_float_data()->Assign(one.floats.begin(), one.floats.end());
    d.SerializeToString(&record);
    char key[24];
    std::snprintf(key, sizeof key, "%08llu", static_cast<unsigned long long>(n));
    writer.put(key, record);
    if (options.progress && (n + 1) % 1000 == 0) options.progress(n + 1);
  }
  writer.finish();
}

}  // namespace poseidon
