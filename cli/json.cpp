#include "tang/cli/json.hpp"

#include <cmath>

#include "tang/base/number.hpp"

namespace tang::cli {

Json::Json(double v) : text(std::isfinite(v) ? shortest(v) : "null") {}

Json object(const Fields& fields) {
  Json out = 0;
  out.text = "{";
  for (auto& [name, value] : fields) out.text += (out.text.size() > 1 ? "," : "") + quoted_json(name) + ":" + value.text;
  out.text += "}";
  return out;
}

Json array(const std::vector<Json>& values) {
  Json out = 0;
  out.text = "[";
  for (auto& v : values) out.text += (out.text.size() > 1 ? ",\n" : "\n") + v.text;
  out.text += "]";
  return out;
}

} // namespace tang::cli
