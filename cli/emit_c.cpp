#include "tang/cli/tool.hpp"

namespace tang::cli {

int emit_c(const Common&, const std::string&, const std::string&) { throw Error({}, "emit c is not here yet", {}, "use tang run or tang verify"); }

}  // namespace tang::cli
