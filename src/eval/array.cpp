#include "tang/eval/array.hpp"

#include <algorithm>

namespace tang::eval {

int64_t volume(const std::vector<int64_t>& shape) {
  int64_t v = 1;
  for (int64_t e : shape) v *= e;
  return v;
}

std::vector<int64_t> bound(const std::vector<ir::Extent>& shape) {
  std::vector<int64_t> out;
  for (auto& e : shape) out.push_back(e.value());
  return out;
}

Array::Array(std::vector<int64_t> shape_, Type type_) : shape(std::move(shape_)), type(type_) {
  (type == Type::real ? r.resize(size_t(volume(shape))) : i.resize(size_t(volume(shape))));
}

int64_t Array::size() const { return volume(shape); }

Value Array::at(int64_t k) const {
  const State s = state.empty() ? State::present : State(state[size_t(k)]);
  return type == Type::real ? Value{type, s, r[size_t(k)], 0} : Value{type, s, 0, i[size_t(k)]};
}

void Array::set(int64_t k, const Value& v) {
  if (type == Type::real)
    r[size_t(k)] = v.r;
  else
    i[size_t(k)] = v.i;
  if (v.state != State::present && state.empty()) state.resize(size_t(size()), 0);
  if (!state.empty()) state[size_t(k)] = uint8_t(v.state);
}

bool Array::all_present() const {
  return std::all_of(state.begin(), state.end(), [](uint8_t s) { return s == uint8_t(State::present); });
}

Array reals(std::vector<int64_t> shape, std::vector<double> values) {
  check(volume(shape) == int64_t(values.size()), "values do not fill the shape");
  Array a;
  a.shape = std::move(shape);
  a.r = std::move(values);
  return a;
}

Array indices(std::vector<int64_t> shape, std::vector<int64_t> values) {
  check(volume(shape) == int64_t(values.size()), "values do not fill the shape");
  Array a;
  a.shape = std::move(shape);
  a.type = Type::index;
  a.i = std::move(values);
  return a;
}

} // namespace tang::eval
