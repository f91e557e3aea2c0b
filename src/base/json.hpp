// JSON that is written as text; reading it, or changing it, is nlohmann's.
#pragma once
#include <string>

namespace tang {

// A JSON string: in quotes, what it may not hold escaped.
std::string quoted_json(const std::string& s);

} // namespace tang
