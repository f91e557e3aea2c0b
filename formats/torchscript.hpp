// The weights of a TorchScript file: the blobs <root>/data/N of its zip, stored without compression.
#pragma once
#include "tang/formats/file.hpp"
#include "tang/formats/tensor_file.hpp"

namespace tang::formats {

// Entries "data/0", "data/1", .. in order of their number, each [elements] of F32: shapes and types are in a
// pickle, which is a program and is not run, so the caller must know that the blobs are f32. Checks the zip's
// directory against its local headers, spans, overlaps and checksums. Throws Error: compressed or encrypted
// blobs, zip64.
TensorFile read_torchscript(File file);

} // namespace tang::formats
