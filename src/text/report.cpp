// Diagnostics as text: the user's lines, carets, labels, a fix.
#include <algorithm>
#include <map>

#include "tang/text/text.hpp"

namespace tang::text {

namespace {
constexpr size_t most_columns = 100;

// The next character of `s` at `at` as it may be shown; moves `at` past it. Bytes that are no UTF-8, controls
// and characters that reorder or hide text are escaped.
std::string glyph(std::string_view s, size_t& at) {
  static const char* hex = "0123456789abcdef";
  const unsigned char c = static_cast<unsigned char>(s[at]);
  auto escaped = [&] {
    ++at;
    return std::string("\\x") + hex[c >> 4] + hex[c & 15];
  };
  if (c == '\t') return ++at, std::string(" ");
  if (c < 0x20 || c == 0x7f) return escaped();
  if (c < 0x80) return ++at, std::string(1, char(c));
  const size_t n = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 && c < 0xe0 ? 2 : 0;
  if (!n || c >= 0xf5 || at + n > s.size()) return escaped();
  uint32_t code = c & (0x7f >> n);
  for (size_t k = 1; k < n; ++k) {
    const unsigned char d = static_cast<unsigned char>(s[at + k]);
    if ((d & 0xc0) != 0x80) return escaped();
    code = code << 6 | (d & 0x3f);
  }
  const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool hidden = code < 0xa0 || (code >= 0x200b && code <= 0x200f) ||
                      (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
                      code == 0xfeff || (code >= 0xd800 && code <= 0xdfff);
  if (hidden || code < least[n] || code > 0x10ffff) return escaped();
  at += n;
  return std::string(s.substr(at - n, n));
}

size_t width(const std::string& s) {
  return size_t(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string_view line_of(std::string_view text, int line) {
  size_t at = 0;
  for (int k = 1; k < line; ++k) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return {};
    ++at;
  }
  std::string_view out = text.substr(at, text.find('\n', at) - at);
  return !out.empty() && out.back() == '\r' ? out.substr(0, out.size() - 1) : out;
}

struct Label {
  int column, length;
  std::string text;
};

// A source line, cut to a window around its labels, and the caret lines under it.
std::string snippet(std::string_view source, int line, std::vector<Label> labels) {
  std::stable_sort(labels.begin(), labels.end(), [](auto& a, auto& b) { return a.column < b.column; });
  std::vector<size_t> place{}; // display column of each byte
  std::vector<std::string> glyphs;
  for (size_t at = 0, column = 0; at < source.size();) {
    const size_t from = at;
    glyphs.push_back(glyph(source, at));
    place.insert(place.end(), at - from, column);
    column += width(glyphs.back());
  }
  size_t total = 0;
  for (auto& g : glyphs) total += width(g);
  place.push_back(total);
  auto column_of = [&](int c) { return place[std::min(size_t(std::max(c, 1) - 1), place.size() - 1)]; };
  const size_t first = labels.empty() ? 0 : column_of(labels[0].column);
  size_t from = 0;
  if (total > most_columns && first > most_columns / 3)
    from = std::min(first - most_columns / 3, total - most_columns);
  std::string shown_line, number = std::to_string(line), margin(number.size(), ' ');
  size_t column = 0;
  for (auto& g : glyphs) {
    if (column >= from && column + width(g) <= from + most_columns) shown_line += g;
    column += width(g);
  }
  if (from) shown_line = "..." + shown_line;
  if (total > from + most_columns) shown_line += "...";
  const size_t shift = from ? 3 : 0;
  std::string out = " " + number + " | " + shown_line + "\n", carets;
  auto flush = [&] {
    if (!carets.empty()) out += " " + margin + " | " + carets + "\n";
    carets.clear();
  };
  for (auto& l : labels) {
    const size_t begin = std::max(column_of(l.column), from) - from + shift;
    const size_t end = column_of(l.column + std::max(l.length, 1));
    const size_t most = from + most_columns > begin + from ? most_columns - begin + shift : 1;
    const size_t n = std::clamp(end > begin + from - shift ? end - (begin + from - shift) : 1, size_t(1),
                                std::max(most, size_t(1)));
    if (!carets.empty() && width(carets) + 1 > begin) flush();
    carets += std::string(begin - width(carets), ' ') + std::string(n, '^');
    if (!l.text.empty()) carets += " " + l.text;
  }
  flush();
  return out;
}
} // namespace

std::string shown(std::string_view s, size_t most) {
  std::string out;
  size_t n = 0;
  for (size_t at = 0; at < s.size();) {
    const std::string g = glyph(s, at);
    if ((n += width(g)) > most) return out + "...";
    out += g;
  }
  return out;
}

std::string render(const Diagnostic& d, std::string_view text, const std::string& file_name) {
  static constexpr const char* kinds[] = {"error", "not yet", "warning"};
  std::string out = std::string(kinds[d.kind]) + "[" + d.code + "]: " + d.headline + "\n";
  const std::string file = shown(file_name.substr(file_name.rfind('/') + 1), 100);
  if (d.where.line) {
    out += " --> " + file + ":" + std::to_string(d.where.line) + ":" +
           std::to_string(std::max(d.where.column, 1)) + "\n";
    std::map<int, std::vector<Label>> lines; // facts of other lines, in order
    std::vector<Label> here;
    bool primary = false;
    for (auto& f : d.facts) {
      if (!f.where.line) continue;
      if (f.where.line == d.where.line) {
        here.push_back({f.where.column, f.where.length, f.text});
        primary |= f.where.column == d.where.column;
      } else {
        lines[f.where.line].push_back({f.where.column, f.where.length, f.text});
      }
    }
    if (!primary) here.push_back({d.where.column, d.where.length, ""});
    out += snippet(line_of(text, d.where.line), d.where.line, here);
    for (auto& [line, labels] : lines) out += snippet(line_of(text, line), line, labels);
  }
  for (auto& f : d.facts)
    if (!f.where.line) out += "  note: " + f.text + "\n";
  if (!d.fix.empty()) out += "  help: " + d.fix + "\n";
  return out;
}

std::string render(const std::vector<Diagnostic>& all, std::string_view text, const std::string& file_name) {
  constexpr size_t most = 20; // of a file that is none, each byte may be one
  std::string out;
  for (size_t k = 0; k < all.size() && k < most; ++k)
    out += (k ? "\n" : "") + render(all[k], text, file_name);
  if (all.size() > most) out += "\nand " + std::to_string(all.size() - most) + " more\n";
  return out;
}

Problems::Problems(std::vector<Diagnostic> all, const std::string& report)
    : Error({}, report), all_(std::move(all)) {}

} // namespace tang::text
