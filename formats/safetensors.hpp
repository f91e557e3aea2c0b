// safetensors: u64 header length, a JSON header {name: {dtype, shape, data_offsets}}, the tensors' bytes.
#pragma once
#include <string>

#include "tang/formats/file.hpp"
#include "tang/formats/tensor_file.hpp"

namespace tang::formats {

// Accepts a file only if its tensors cover its data exactly: no hole, overlap, trailing byte or second name,
// and every span as large as shape and dtype say. Text entries of __metadata__ become metadata. Throws Error.
TensorFile read_safetensors(File file);

// Wide elements first, so that every tensor is aligned to its element; otherwise in the file's order. A
// tensor in fortran order is refused (the format has no such flag). Throws Error.
void write_safetensors(const std::string& path, const TensorFile& tensors);

} // namespace tang::formats
