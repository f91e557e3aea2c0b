#include <cmath>

#include "tang/models/attention.hpp"

namespace tang::models {

Mask operator&&(const Mask& a, const Mask& b) {
  return {[a, b](const Spot& s) {
    const Guard left = a.at(s), right = b.at(s);
    return left && right;
  }};
}

Mask operator||(const Mask& a, const Mask& b) {
  return {[a, b](const Spot& s) {
    const Guard left = a.at(s), right = b.at(s);
    return left || right;
  }};
}

Mask causal() {
  return {[](const Spot& s) { return s.key <= s.position; }};
}

Mask window(int64_t width) {
  return {[width](const Spot& s) {
    if (width < 1)
      reject(s.where, "a window of " + std::to_string(width) + " keys",
             {{"the window counts the row itself", {}}}, "give it at least one");
    return s.position - Index(width) < s.key;
  }};
}

Mask sink(int64_t count) { return prefix(count); }

Mask prefix(int64_t length) {
  return {[length](const Spot& s) { return s.key < Index(length); }};
}

Mask prefix(const Tensor& length) {
  return {[length](const Spot& s) {
    Shapes(s.where)("prefix length", length, "batch");
    return s.key < Index(length.at({s.batch}, s.where));
  }};
}

Mask same_document(const Tensor& query_ids, const Tensor& key_ids) {
  return {[query_ids, key_ids](const Spot& s) {
    Shapes(s.where)("query_ids", query_ids, "batch row")("key_ids", key_ids, "batch key");
    return Index(query_ids.at({s.batch, s.row}, s.where)) == Index(key_ids.at({s.batch, s.key}, s.where));
  }};
}

Mask key_range(const Tensor& start, const Tensor& end) {
  return {[start, end](const Spot& s) {
    Shapes(s.where)("start", start, "batch row")("end", end, "batch row");
    const Index from = start.at({s.batch, s.row}, s.where), to = end.at({s.batch, s.row}, s.where);
    return from <= s.key && s.key < to;
  }};
}

Change soft_cap(double cap) {
  return [cap](const Scalar& score, const Spot& s) {
    if (!(cap > 0)) reject(s.where, "a soft cap of " + shortest(cap), {}, "it is positive");
    return cap * tanh(score / cap);
  };
}

namespace {
std::string head_names(const Spot& s) { return s.heads.size() == 2 ? "kv group" : "head"; }

Scalar index_of(const Spot& s, int64_t v) { return index_literal(*s.builder, v); }

Scalar distance(const Spot& s) { return to_real(iota(s.position - Index(s.key))); } // position - key
} // namespace

Change alibi(const Tensor& slopes) {
  return [slopes](const Scalar& score, const Spot& s) {
    Shapes(s.where)("slopes", slopes, head_names(s));
    return score - slopes.at(coords(s.heads), s.where) * distance(s);
  };
}

Change add_bias(const Tensor& bias) {
  return [bias](const Scalar& score, const Spot& s) {
    const bool shared = given(bias) && bias.shape().size() == 2;
    Shapes(s.where)("bias", bias, shared ? "row key" : head_names(s) + " row key");
    const Coords here{s.row, s.key};
    return score + bias.at(shared ? here : coords(s.heads) + here, s.where);
  };
}

Change scale_by(const Tensor& factor) {
  return [factor](const Scalar& score, const Spot& s) {
    Shapes(s.where)("factor", factor, "");
    return score * factor.at({}, s.where);
  };
}

Change relative_bias(const Tensor& table, Buckets b) {
  return [table, b](const Scalar& score, const Spot& s) {
    Shapes shapes(s.where);
    shapes("bias table", table, "bucket " + head_names(s));
    const int64_t all = shapes.whole("bucket"), n = b.bidirectional ? all / 2 : all, exact = n / 2;
    if (exact < 1 || b.max_distance <= exact)
      reject(s.where, std::to_string(all) + " buckets up to distance " + std::to_string(b.max_distance),
             {{table.name() + " is " + text(table.shape()), table.where()}},
             "use at least 4 buckets, fewer than twice the distance");
    // One bucket a distance, so that no [rows, keys] array of buckets exists: entry e is key - row = e -
    // (rows - 1).
    const Axis e = axis("e", s.rows + s.keys - Extent(1));
    const Scalar ahead = iota(Index(e) - Index(s.rows) + Index(1) - s.first); // key - position
    const Scalar gap = b.bidirectional ? max(ahead, -ahead) : max(-ahead, 0);
    const Scalar steps = log2(to_real(max(gap, 1)) / double(exact)) *
                         (double(n - exact) / std::log2(double(b.max_distance) / double(exact)));
    const Scalar far = min(to_index(floor(steps)) + index_of(s, exact), index_of(s, n - 1));
    Scalar bucket = select(gap < index_of(s, exact), gap, far);
    if (b.bidirectional) bucket = bucket + select(index_of(s, 0) < ahead, index_of(s, n), index_of(s, 0));
    const Tensor buckets = map({e}, bucket, "buckets", s.where);
    const Index at = buckets.at({Index(s.key) - Index(s.row) + Index(s.rows) - Index(1)}, s.where);
    return score + table.at(Coords{at} + coords(s.heads), s.where);
  };
}

Change distance_bias(const Tensor& table, int64_t span) {
  return [table, span](const Scalar& score, const Spot& s) {
    Shapes shapes(s.where);
    shapes("bias table", table, "distance");
    if (!(shapes["distance"] == Extent(2 * span + 1)))
      reject(s.where,
             "a table of " + shapes["distance"].text() + " distances for a span of " + std::to_string(span),
             {{table.name() + " is " + text(table.shape()), table.where()}}, "it has 2 span + 1 entries");
    return score + table.at({s.position - Index(s.key) + Index(span)}, s.where);
  };
}

} // namespace tang::models
