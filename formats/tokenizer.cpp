#include "tang/formats/tokenizer.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

namespace tang::formats {

namespace {
std::string byte_piece(int byte) {
  const char* hex = "0123456789ABCDEF";
  return {'<', '0', 'x', hex[byte >> 4], hex[byte & 15], '>'};
}

bool continues(unsigned char c) { return (c & 0xC0) == 0x80; }
} // namespace

void Tokenizer::check_id(int id) const {
  if (id >= 0 && id < size()) return;
  reject(file_.path, "there is no token " + std::to_string(id),
         {"ids go from 0 to " + std::to_string(size() - 1)}, "use the tokenizer that belongs to the model");
}

std::string_view Tokenizer::piece(int id) const {
  check_id(id);
  return text(uint32_t(id));
}

float Tokenizer::score(int id) const {
  check_id(id);
  return scores_[size_t(id)];
}

std::optional<int> Tokenizer::find(std::string_view piece) const {
  auto less = [&](uint32_t id, std::string_view p) { return text(id) < p; };
  const auto at = std::lower_bound(by_text_.begin(), by_text_.end(), piece, less);
  return at != by_text_.end() && text(*at) == piece ? std::optional(int(*at)) : std::nullopt;
}

std::vector<int> Tokenizer::encode(std::string_view input, bool with_bos, bool with_eos) const {
  std::vector<int> ids;
  // The fixed tokens are no text: nobody can write an end of text, and what is encoded decodes to itself.
  auto find_text = [&](std::string_view p) {
    const auto id = find(p);
    return id && *id >= first_byte + 256 ? id : std::nullopt;
  };
  auto add = [&](std::string_view bytes) {
    if (auto id = find_text(bytes)) return ids.push_back(*id);
    for (unsigned char b : bytes) ids.push_back(first_byte + b);
  };
  if (with_bos) ids.push_back(bos);
  if (!input.empty()) add(" ");
  for (size_t i = 0, end; i < input.size(); i = end) {
    for (end = i + 1; end < input.size() && end - i < 4 && continues(input[end]);) end++;
    add(input.substr(i, end - i));
  }

  // A list of tokens by position; a join keeps the left position, so the order of positions is the order of
  // text.
  struct Join {
    float score;
    size_t left, right;
    int left_id, right_id, joined;

    bool operator<(const Join& o) const { return score != o.score ? score < o.score : left > o.left; }
  };

  const size_t n = ids.size();
  std::vector<size_t> next(n), previous(n);
  for (size_t i = 0; i < n; i++) next[i] = i + 1, previous[i] = i - 1;
  std::priority_queue<Join> joins;
  std::string both;
  auto offer = [&](size_t left, size_t right) {
    if (left >= n || right >= n) return;
    both.assign(text(uint32_t(ids[left])));
    both += text(uint32_t(ids[right]));
    if (auto id = find_text(both))
      joins.push({scores_[size_t(*id)], left, right, ids[left], ids[right], *id});
  };
  for (size_t i = 0; i + 1 < n; i++) offer(i, i + 1);
  while (!joins.empty()) {
    const Join j = joins.top();
    joins.pop();
    // Joined pieces are new and consumed ones are -1: a pair whose ids are both unchanged is still a pair.
    if (ids[j.left] != j.left_id || ids[j.right] != j.right_id) continue;
    ids[j.left] = j.joined;
    ids[j.right] = -1;
    next[j.left] = next[j.right];
    if (next[j.left] < n) previous[next[j.left]] = j.left;
    offer(previous[j.left], j.left);
    offer(j.left, next[j.left]);
  }
  ids.erase(std::remove(ids.begin(), ids.end(), -1), ids.end());
  if (with_eos) ids.push_back(eos);
  return ids;
}

std::string Tokenizer::decode(int previous, int id) const {
  const auto p = piece(id);
  if (id == bos || id == eos) return "";
  const char byte = char(id - first_byte);
  const bool is_byte = id >= first_byte && id < first_byte + 256;
  const std::string_view bytes = is_byte ? std::string_view(&byte, 1) : p;
  return std::string(previous == bos && bytes[0] == ' ' ? bytes.substr(1) : bytes);
}

std::string Tokenizer::decode(const std::vector<int>& ids) const {
  std::string out;
  int previous = -1;
  for (int id : ids) {
    out += decode(previous, id);
    previous = id;
  }
  return out;
}

Tokenizer read_tokenizer(File file, std::optional<int64_t> vocab) {
  if (file.size() > UINT32_MAX) reject(file.path, "is no tokenizer", {"it is larger than 4 GiB"}, damaged);
  Tokenizer t;
  t.file_ = std::move(file);
  const std::string& path = t.file_.path;
  Cursor cursor(t.file_);
  const int32_t max_len = cursor.number<int32_t>("the longest length");
  while (cursor.left()) {
    const std::string token = "token " + std::to_string(t.size());
    if (t.spans_.size() == max_tensors || (vocab && t.size() == *vocab)) {
      reject(path, "holds more tokens than it may",
             {std::to_string(cursor.left()) + " bytes follow token " + std::to_string(t.size() - 1),
              vocab ? "the model has " + std::to_string(*vocab) + " tokens"
                    : "at most " + std::to_string(max_tensors) + " are read"},
             "use the tokenizer that belongs to the model");
    }
    const float score = cursor.number<float>("a score");
    const int32_t size = cursor.number<int32_t>("a length");
    if (!std::isfinite(score))
      reject(path, token + " has no finite score", {"scores order the joins"}, damaged);
    if (size <= 0 || size > max_len || uint64_t(size) > max_name) {
      reject(path, token + " has a wrong length",
             {"it says " + std::to_string(size), "the longest is " + std::to_string(max_len) + "; 1 to " +
                                                     std::to_string(max_name) + " bytes are read"},
             damaged);
    }
    t.spans_.push_back({uint32_t(cursor.at()), uint32_t(size)});
    t.scores_.push_back(score);
    cursor.take(uint64_t(size), "a piece");
  }
  if (vocab && t.size() != *vocab) {
    reject(path, "holds another number of tokens than the model",
           {"it has " + std::to_string(t.size()), "the model has " + std::to_string(*vocab)},
           "use the tokenizer that belongs to the model");
  }
  for (int b = 0; b < 256; b++) {
    const int id = Tokenizer::first_byte + b;
    if (id < t.size() && t.text(uint32_t(id)) == byte_piece(b)) continue;
    reject(path, "has no token for every byte",
           {"token " + std::to_string(id) + " must be " + byte_piece(b),
            id < t.size() ? "it is '" + shown(t.text(uint32_t(id))) + "'"
                          : "there are " + std::to_string(t.size()) + " tokens"},
           "export the tokenizer from a model with byte fallback");
  }
  t.by_text_.resize(t.spans_.size());
  for (uint32_t i = 0; i < t.by_text_.size(); i++) t.by_text_[i] = i;
  std::sort(t.by_text_.begin(), t.by_text_.end(),
            [&](uint32_t a, uint32_t b) { return t.text(a) != t.text(b) ? t.text(a) < t.text(b) : a < b; });
  for (size_t i = 1; i < t.by_text_.size(); i++) {
    const uint32_t a = t.by_text_[i - 1], b = t.by_text_[i];
    if (t.text(a) != t.text(b)) continue;
    reject(path, "has a piece twice",
           {"tokens " + std::to_string(a) + " and " + std::to_string(b) + " are both '" + shown(t.text(a)) +
            "'"},
           "remove one: encoding would be ambiguous");
  }
  return t;
}

} // namespace tang::formats
