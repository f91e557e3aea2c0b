#include "tang/cli/json.hpp"

#include <cmath>
#include <cstdio>

#include "tang/base/number.hpp"

namespace tang::cli {

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (unsigned char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c < 32) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += char(c);
    }
  }
  return out + "\"";
}

Json::Json(double v) : text(std::isfinite(v) ? shortest(v) : "null") {}

Json object(const Fields& fields) {
  Json out = 0;
  out.text = "{";
  for (auto& [name, value] : fields) out.text += (out.text.size() > 1 ? "," : "") + quoted(name) + ":" + value.text;
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
