// npy: one array. Magic, version 1-3, a header that is a Python dict, the bytes.
#pragma once
#include <string>

#include "tang/formats/file.hpp"
#include "tang/formats/tensor_file.hpp"

namespace tang::formats {

// One entry named "array", its fortran_order as the header says. Little-endian b1 u1 i1 u2 i2 f2 u4 i4 f4 u8
// i8 f8; anything else (objects, structures, big endian, bytes after the array) is an Error.
TensorFile read_npy(File file);

// Versions 1, 2 and 3 differ in the width of the header's length; 1 is what every reader knows. Throws Error
// for an element type that npy lacks.
void write_npy(const std::string& path, const TensorFile& tensors, const Entry& entry, int version = 1);

} // namespace tang::formats
