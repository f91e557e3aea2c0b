// JSON as text, for documents that are printed whole. Reading it, or changing it, is nlohmann's.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tang/base/json.hpp"

namespace tang::cli {

// A value, written already. A number that JSON has not (inf, nan) is null.
struct Json {
  Json(const char* s) : text(quoted_json(s)) {}
  Json(const std::string& s) : text(quoted_json(s)) {}
  Json(bool v) : text(v ? "true" : "false") {}
  Json(double v);
  Json(int v) : text(std::to_string(v)) {}
  Json(long v) : text(std::to_string(v)) {}
  Json(long long v) : text(std::to_string(v)) {}
  Json(unsigned long v) : text(std::to_string(v)) {}
  Json(unsigned long long v) : text(std::to_string(v)) {}

  std::string text;
};

using Fields = std::vector<std::pair<const char*, Json>>; // in this order

Json object(const Fields& fields);
Json array(const std::vector<Json>& values); // a line for each

} // namespace tang::cli
