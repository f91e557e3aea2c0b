#include "cuda.hpp"
namespace bench { int cuda_report(const std::string&, const std::vector<std::string>&) { return 0; } }
