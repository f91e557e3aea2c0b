// llama2.c tokenizer: pieces with scores; text to ids by greedy merging, ids to text.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tang/formats/file.hpp"

namespace tang::formats {

// Ids: 0 unknown, 1 begin (bos), 2 end (eos), 3..258 the 256 bytes, then pieces.
class Tokenizer {
public:
  static constexpr int bos = 1, eos = 2, first_byte = 3;

  int size() const { return int(spans_.size()); }

  std::string_view piece(int id) const; // throws Error: no such id
  float score(int id) const;            // throws Error: no such id
  std::optional<int> find(std::string_view piece) const;

  // bos (if asked), a piece " " unless the text is empty, one piece a code point or else one a byte; then the
  // adjacent pair whose joined piece scores highest (leftmost of equals) is joined until none can be. Pieces
  // are ids from 259 on. O(n log n). Any bytes are a text: decode(encode(text)) == text.
  std::vector<int> encode(std::string_view text, bool with_bos = true, bool with_eos = false) const;

  // What `id` adds to the text when it follows `previous`: nothing for bos and eos; 3..258 are raw bytes;
  // after bos one leading space is dropped. Throws Error: no such id. May end inside a code point.
  std::string decode(int previous, int id) const;
  std::string decode(const std::vector<int>& ids) const;

private:
  friend Tokenizer read_tokenizer(File file, std::optional<int64_t> vocab);

  struct Span {
    uint32_t at, size;
  };

  std::string_view text(uint32_t id) const { return file_.text(spans_[id].at, spans_[id].size); }

  void check_id(int id) const;

  File file_;
  std::vector<Span> spans_;
  std::vector<float> scores_;
  std::vector<uint32_t> by_text_;
};

// `vocab`: how many tokens the model has; any number if absent. Throws Error for another number of tokens, a
// length that is negative, over max_len or over 1 KiB, an empty or repeated piece, a score that is not
// finite, or when ids 3..258 are not <0x00>..<0xFF>. Pieces need not be UTF-8.
Tokenizer read_tokenizer(File file, std::optional<int64_t> vocab = std::nullopt);

} // namespace tang::formats
