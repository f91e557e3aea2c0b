#include "tang/formats/npy.hpp"

#include <algorithm>

#include "tang/base/error.hpp"

namespace tang::formats {

namespace {
constexpr std::string_view magic = "\x93NUMPY";
constexpr uint64_t max_header = 64 << 10;

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  bool has_descr = false, has_order = false, has_shape = false;
};

// The dict literal: three keys in any order, each once.
class Literal {
public:
  Literal(const File& file, std::string_view text) : file_(file), text_(text) {}

  Header read() {
    Header h;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !h.has_descr) {
        h.has_descr = true;
        h.descr = peek() == '[' ? wrong("a structure as descr; plain element types are read") : quoted();
      } else if (key == "fortran_order" && !h.has_order) {
        h.has_order = true;
        h.fortran_order = truth();
      } else if (key == "shape" && !h.has_shape) {
        h.has_shape = true;
        h.shape = tuple();
      } else {
        wrong("key '" + shown(key) + "' unknown or twice");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) wrong("text after the dict");
    if (!h.has_descr || !h.has_order || !h.has_shape) wrong("no descr, fortran_order or shape");
    return h;
  }

private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) at_++;
  }

  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    at_++;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) wrong(std::string("no '") + c + "' where one belongs");
  }

  std::string quoted() {
    const char mark = peek();
    if (mark != '\'' && mark != '"') wrong("no text where one belongs");
    const size_t end = text_.find(mark, at_ + 1);
    if (end == std::string_view::npos) wrong("a text without end");
    const auto inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return std::string(inside);
  }

  bool truth() {
    skip();
    for (std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    wrong("fortran_order neither True nor False");
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> out;
    expect('(');
    while (!accept(')')) {
      if (out.size() == max_dims) wrong("over " + std::to_string(max_dims) + " dimensions");
      out.push_back(whole());
      if (accept(',')) continue;
      if (out.size() == 1) wrong("a shape (n) that is no tuple; one dimension is (n,)");
      expect(')');
      break;
    }
    return out;
  }

  int64_t whole() {
    skip();
    const size_t from = at_;
    int64_t v = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; at_++) {
      if (__builtin_mul_overflow(v, int64_t(10), &v) ||
          __builtin_add_overflow(v, int64_t(text_[at_] - '0'), &v))
        wrong("a dimension over 2^63 - 1");
    }
    if (at_ == from) wrong("a dimension that is no whole number >= 0");
    return v;
  }

  [[noreturn]] std::string wrong(const std::string& what) {
    const size_t from = at_ < 24 ? 0 : at_ - 24;
    reject(file_.path, "the npy header cannot be read",
           {"it has " + what, "at byte " + std::to_string(at_) + " of the header, near '" +
                                  shown(text_.substr(std::min(from, text_.size()), 48)) + "'"},
           "write the array again with a plain element type and at most 8 dimensions");
  }

  const File& file_;
  std::string_view text_;
  size_t at_ = 0;
};

Dtype dtype_of(const File& file, const std::string& descr) {
  const auto dtype = descr.size() == 3 ? dtype_of_npy(std::string_view(descr).substr(1)) : std::nullopt;
  const bool one_byte = dtype && row(*dtype).bytes == 1;
  if (dtype && (descr[0] == '<' || (one_byte && descr[0] == '|'))) return *dtype;
  std::string fix = "convert the array to one of these types before it is saved";
  if (dtype && descr[0] == '>')
    fix = "convert the array to little endian ('<" + descr.substr(1) + "') before it is saved";
  reject(file.path, "has an element type that is not read",
         {"descr is '" + shown(descr) + "'", "little-endian " + list_npy_dtypes() + " are read"}, fix);
}
} // namespace

TensorFile read_npy(File file) {
  Cursor cursor(file);
  const auto start = cursor.take(magic.size(), "the magic");
  if (start != magic) {
    reject(file.path, "is no npy file",
           {"it must begin with '" + shown(magic) + "'", "it begins with '" + shown(start) + "'"}, damaged);
  }
  const int major = cursor.number<uint8_t>("the version"), minor = cursor.number<uint8_t>("the version");
  if (major < 1 || major > 3 || minor != 0) {
    reject(file.path, "has an unknown npy version",
           {"it says " + std::to_string(major) + "." + std::to_string(minor), "1.0, 2.0 and 3.0 are read"},
           damaged);
  }
  const uint64_t length = major == 1 ? cursor.number<uint16_t>("the header's length")
                                     : cursor.number<uint32_t>("the header's length");
  if (length > max_header) {
    reject(file.path, "has too long a header",
           {"it says " + std::to_string(length) + " bytes",
            "at most " + std::to_string(max_header) + " are read"},
           damaged);
  }
  Header h = Literal(file, cursor.take(length, "the header")).read();
  const Dtype dtype = dtype_of(file, h.descr);
  const auto need = count_bytes(h.shape, dtype);
  if (!need || *need != cursor.left()) {
    reject(file.path, "the array does not match its bytes",
           {"shape " + text(h.shape) + " of '" + shown(h.descr) + "' takes " +
                (need ? std::to_string(*need) + " bytes" : "more bytes than 64 bits can count"),
            "after the header the file has " + std::to_string(cursor.left())},
           damaged);
  }
  std::vector<Entry> entries;
  entries.push_back({"array", std::move(h.shape), cursor.at(), *need, dtype, h.fortran_order});
  return TensorFile(file.path, std::move(file.bytes), std::move(entries));
}

void write_npy(const std::string& path, const TensorFile& tensors, const Entry& entry, int version) {
  check(version >= 1 && version <= 3, "npy versions are 1, 2 and 3");
  const auto& type = row(entry.dtype);
  if (!*type.npy) {
    reject(path, "tensor '" + shown(entry.name) + "' cannot be an npy array",
           {std::string("its element type is ") + type.name, "npy has " + list_npy_dtypes()},
           "convert it, or write safetensors");
  }
  std::string shape;
  for (int64_t d : entry.shape) shape += std::to_string(d) + (entry.shape.size() == 1 ? "," : ", ");
  if (entry.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string dict = std::string("{'descr': '") + (type.bytes == 1 ? "|" : "<") + type.npy +
                     "', 'fortran_order': " + (entry.fortran_order ? "True" : "False") + ", 'shape': (" +
                     shape + "), }";
  const size_t before = magic.size() + 2 + (version == 1 ? 2 : 4);
  const size_t total = (before + dict.size() + 1 + 63) / 64 * 64; // the array begins at a multiple of 64
  dict.resize(total - before - 1, ' ');
  dict += '\n';
  std::string head(magic);
  head += {char(version), '\0'};
  for (size_t i = 0; i < before - magic.size() - 2; i++) head += char(dict.size() >> (8 * i) & 255);
  head += dict;
  write_file(path, {{reinterpret_cast<const uint8_t*>(head.data()), head.size()}, tensors.data(entry)});
}

} // namespace tang::formats
