// JSON with tensors in base64: {"name": {"shape": [..], "dtype": "torch.float32", "data": "base64"},
// "config": {..}}.
#pragma once
#include "tang/formats/file.hpp"
#include "tang/formats/tensor_file.hpp"

namespace tang::formats {

// Little-endian f32 tensors. The record "config" becomes metadata, its numbers as text. Throws Error.
TensorFile read_json_tensors(File file);

} // namespace tang::formats
