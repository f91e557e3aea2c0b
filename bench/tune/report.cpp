#include "bench.hpp"
namespace bench {
int report(const std::string&, const std::vector<std::string>&) { return 0; }
}
