#include "tang/emit/shared_text.hpp"

#include <cctype>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tang/emit/dialect.hpp"

namespace tang::emit {

const char* const integer_text = R"(
TANG Z tang_lesser(Z a, Z b) { if (a < b) { return a; } return b; }
TANG Z tang_greater(Z a, Z b) { if (a > b) { return a; } return b; }
TANG Z tang_floor_div(Z a, Z b) {
  const Z q = a / b; // no remainder: GLSL does not define one of a negative number
  if (a < 0 && q * b != a) { return q - 1; }
  return q;
}
TANG Z tang_div(Z a, Z b) { if (b > 0) { return tang_floor_div(a, b); } return 0; }
TANG Z tang_mod(Z a, Z b) { if (b > 0) { return a - tang_floor_div(a, b) * b; } return 0; }
TANG Z tang_shl(Z a, Z n) { if (n < 0 || n >= ZBITS) { return 0; } return TO_Z(TO_N(a) << TO_U(n)); }
TANG Z tang_shr(Z a, Z n) {
  if (n >= 0 && n < ZBITS) { return a >> TO_U(n); }
  if (a < 0) { return -1; }
  return 0;
}
TANG Z tang_shru(Z a, Z n) { if (n < 0 || n >= ZBITS) { return 0; } return TO_Z(TO_N(a) >> TO_U(n)); }
TANG Z tang_trunc(R r) {
  if (r >= ZTOP) { return ZMAX; }
  if (r <= -ZTOP) { return ZMIN; }
  if (r < ZTOP) { return TO_Z(r); }
  return 0;
}
)";

const char* const simple_text = R"(
TANG F tang_ratio$(F a, F b) { return tang_sel$(tang_equal$(b, tang_splat$(0.0f)), tang_splat$(0.0f), a / b); }
TANG F tang_abs$(F x) { return tang_f$(tang_u$(x) & 0x7fffffffu); }
TANG F tang_floor$(F x) {
  const M whole = tang_less$(tang_abs$(x), tang_splat$(0x1p23f));
  const F t = tang_real$(tang_whole$(tang_sel$(whole, x, tang_splat$(0.0f))));
  const F r = t - tang_sel$(tang_less$(x, t), tang_splat$(1.0f), tang_splat$(0.0f));
  return tang_sel$(tang_both$(whole, tang_not$(tang_equal$(t, x))), r, x);
}
)";

const char* const fused_pi_text = R"(
TANG F tang_less_pi$(F x, F k) { // x - k pi
  F r = tang_fma$(k, tang_splat$(-0x1.921fb6p+1f), x);
  r = tang_fma$(k, tang_splat$(0x1.777a5cp-24f), r);
  return tang_fma$(k, tang_splat$(0x1.ee59dap-49f), r);
}
)";

const char* const split_pi_text = R"(
TANG F tang_less_pi$(F x, F k) { // x - k pi, pi in parts of 10 bits: k has 14, every product is exact
  F r = x - k * 0x1.92p+1f;
  r = r - k * 0x1.fb8p-11f;
  r = r + k * 0x1.5ep-22f;
  return r - k * 0x1.0b4612p-33f;
}
)";

// tang_shift(x) is x rounded to an integer, as a number s that tang_shifted(s) turns into that integer as a real and
// tang_count(s) into one as an integer.
const char* const scale_text = R"(
// p 2^n, rounded once; |n| <= 150.
TANG F tang_scale_by_parts$(F p, I n) {
  const I h = n >> 1u;
  return p * tang_f$(tang_unsigned$(h + 127) << 23u) * tang_f$(tang_unsigned$(n - h + 127) << 23u);
}
)";

const char* const exp2_text = R"(
TANG F tang_exp2$(F x) {
  const F c = tang_lower$(tang_splat$(128.0f), tang_upper$(tang_splat$(-150.0f), x));  // NaN stays
  const F t = tang_shift$(c);
  const F n = tang_shifted$(t);
  const F r = c - n;
  F p = tang_splat$(0x1.44175ep-13f);
  p = tang_fma$(p, r, tang_splat$(0x1.5ef5d0p-10f));
  p = tang_fma$(p, r, tang_splat$(0x1.3b2a54p-7f));
  p = tang_fma$(p, r, tang_splat$(0x1.c6af9cp-5f));
  p = tang_fma$(p, r, tang_splat$(0x1.ebfbe0p-3f));
  p = tang_fma$(p, r, tang_splat$(0x1.62e430p-1f));
  p = tang_fma$(p, r, tang_splat$(1.0f));
  return tang_scale$(p, t, n);
}
)";

const char* const elementary_text = R"(
TANG F tang_log2$(F x) {
  const M tiny = tang_less$(x, tang_splat$(0x1p-126f));
  const U u = tang_u$(tang_sel$(tiny, x * 0x1p23f, x)) - 0x3f3504f3u;
  const F f = tang_f$((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const F e = tang_real$(tang_int$(u) >> 23u) - tang_sel$(tiny, tang_splat$(23.0f), tang_splat$(0.0f));
  F p = tang_splat$(0x1.82fa3ap-4f);
  p = tang_fma$(p, f, tang_splat$(-0x1.517e40p-3f));
  p = tang_fma$(p, f, tang_splat$(0x1.5e1a2ap-3f));
  p = tang_fma$(p, f, tang_splat$(-0x1.6fe35ep-3f));
  p = tang_fma$(p, f, tang_splat$(0x1.a476bep-3f));
  p = tang_fma$(p, f, tang_splat$(-0x1.ec654ap-3f));
  p = tang_fma$(p, f, tang_splat$(0x1.277c44p-2f));
  p = tang_fma$(p, f, tang_splat$(-0x1.7154c6p-2f));
  p = tang_fma$(p, f, tang_splat$(0x1.ec7094p-2f));
  p = tang_fma$(p, f, tang_splat$(-0x1.715476p-1f));
  const F h = f * 0x1.715476p+0f;
  const F l = tang_fma$(f, tang_splat$(0x1.715476p+0f), -h) + f * 0x1.4ae0c0p-26f;
  const F s = e + h;
  const F err = h - (s - e);
  F r = s + (err + tang_fma$(f * f, p, l));
  r = tang_sel$(tang_equal$(x, tang_splat$(0.0f)), tang_splat$(-INF), r);
  r = tang_sel$(tang_equal$(x, tang_splat$(INF)), x, r);
  return tang_sel$(tang_less$(tang_splat$(-1.0f), tang_sel$(tang_less$(x, tang_splat$(0.0f)), tang_splat$(-2.0f), x)), r, tang_splat$(NAN_));
}
TANG F tang_sin_near$(F x) {
  const F t = tang_shift$(x * 0x1.45f306p-2f);
  const F k = tang_shifted$(t);
  const F r = tang_less_pi$(x, k);
  const F z = r * r;
  F p = tang_splat$(-0x1.dfe85ep-26f);
  p = tang_fma$(p, z, tang_splat$(0x1.747576p-19f));
  p = tang_fma$(p, z, tang_splat$(-0x1.a02e42p-13f));
  p = tang_fma$(p, z, tang_splat$(0x1.11114ap-7f));
  p = tang_fma$(p, z, tang_splat$(-0x1.555556p-3f));
  const F s = tang_fma$(r * z, p, r);
  return tang_sel$(tang_less$(tang_abs$(x), tang_splat$(0x1p-12f)), x, tang_f$(tang_u$(s) ^ (tang_unsigned$(tang_count$(t)) << 31u)));
}
TANG F tang_atan2$(F y, F x) {
  const F ax = tang_abs$(x);
  const F ay = tang_abs$(y);
  const M steep = tang_less$(ax, ay);
  const F top = tang_sel$(steep, ay, ax);
  const F low = tang_sel$(steep, ax, ay);
  F t = tang_sel$(tang_equal$(top, tang_splat$(0.0f)), top, low / top);
  t = tang_sel$(tang_equal$(low, tang_splat$(INF)), tang_splat$(1.0f), t);
  const F z = t * t;
  F p = tang_splat$(0x1.bbab1ep-10f);
  p = tang_fma$(p, z, tang_splat$(-0x1.4b1c42p-7f));
  p = tang_fma$(p, z, tang_splat$(0x1.ce2572p-6f));
  p = tang_fma$(p, z, tang_splat$(-0x1.a1f138p-5f));
  p = tang_fma$(p, z, tang_splat$(0x1.256f7cp-4f));
  p = tang_fma$(p, z, tang_splat$(-0x1.6ff086p-4f));
  p = tang_fma$(p, z, tang_splat$(0x1.c6a61cp-4f));
  p = tang_fma$(p, z, tang_splat$(-0x1.2490b8p-3f));
  p = tang_fma$(p, z, tang_splat$(0x1.9999bep-3f));
  p = tang_fma$(p, z, tang_splat$(-0x1.555556p-2f));
  F a = tang_fma$(t * z, p, t);
  a = tang_sel$(steep, (0x1.921fb6p+0f - a) + -0x1.777a5cp-25f, a);
  a = tang_sel$(tang_iless$(tang_int$(tang_u$(x)), tang_ints$(0)), (0x1.921fb6p+1f - a) + -0x1.777a5cp-24f, a);
  a = tang_f$(tang_u$(a) | (tang_u$(y) & 0x80000000u));
  return tang_sel$(tang_both$(tang_equal$(x, x), tang_equal$(y, y)), a, x + y);
}
)";

// x = m 2^shift with m a whole number of 24 bits; 1 / pi as seven words. The window of three words begins where the
// product with m is no longer a multiple of 2; the product's bits below its point are the fraction of x / pi.
const char* const far_sine_text = R"(
TANG U tang_word_of_inverse_pi(U k) {
  if (k == 0u) { return 0x517cc1b7u; }
  if (k == 1u) { return 0x27220a94u; }
  if (k == 2u) { return 0xfe13abe8u; }
  if (k == 3u) { return 0xfa9a6ee0u; }
  if (k == 4u) { return 0x6db14accu; }
  if (k == 5u) { return 0x9e21c820u; }
  return 0xff28b1d5u;
}
TANG U tang_high_product(U a, U b) {
  const U al = a & 0xffffu;
  const U ah = a >> 16u;
  const U bl = b & 0xffffu;
  const U bh = b >> 16u;
  const U low = al * bl;
  const U m1 = ah * bl + (low >> 16u);
  const U m2 = al * bh + (m1 & 0xffffu);
  return ah * bh + (m1 >> 16u) + (m2 >> 16u);
}
TANG U tang_window(U word, U off) {
  const U w = tang_word_of_inverse_pi(word);
  if (off == 0u) { return w; }
  return (w << off) | (tang_word_of_inverse_pi(word + 1u) >> (32u - off));
}
TANG F tang_sin_far$(F x) {
  const U u = tang_u$(x);
  const U e = (u >> 23u) & 255u;
  if (e == 255u) { return x - x; }
  const U m = (u & 0x7fffffu) | 0x800000u;
  const I shift = tang_int$(e) - 150;
  I start = 0;
  if (shift > 1) { start = shift - 1; }
  const U word = tang_unsigned$(start) >> 5u;
  const U off = tang_unsigned$(start) & 31u;
  const U w0 = tang_window(word, off);
  const U w1 = tang_window(word + 1u, off);
  const U w2 = tang_window(word + 2u, off);
  // x / pi = m (w0 w1 w2) 2^(lift - 96), as three words a b c.
  const I lift = shift - start;
  const U c = tang_high_product(m, w2);
  const U b0 = m * w1;
  const U b = b0 + c;
  U carry = tang_high_product(m, w1);
  if (b < b0) { carry = carry + 1u; }
  const U a = m * w0 + carry;
  U top = tang_high_product(m, w0);
  if (a < carry) { top = top + 1u; }
  // Whole part in `top`, fraction in a and b, before the lift; the lift is 1, 0 or at least -23.
  U whole = top;
  U hi = a;
  U lo = b;
  if (lift == 1) {
    whole = (top << 1u) | (a >> 31u);
    hi = (a << 1u) | (b >> 31u);
    lo = b << 1u;
  }
  if (lift < 0) {
    const U back = tang_unsigned$(-lift);
    whole = top >> back;
    hi = (a >> back) | (top << (32u - back));
    lo = (b >> back) | (a << (32u - back));
  }
  const U up = hi >> 31u;  // the nearest multiple
  if (up == 1u) {
    hi = ~hi;
    lo = ~lo;
  }
  // The fraction as q + v, times pi as r + v: r is a rounded product, v what is missing.
  const F q = tang_real_of_u$(hi >> 8u) * 0x1p-24f;
  F v = tang_real_of_u$(((hi & 255u) << 16u) | (lo >> 16u)) * 0x1p-48f;
  F r = q * 0x1.921fb6p+1f;
  v = tang_fma$(q, 0x1.921fb6p+1f, -r) + (q * -0x1.777a5cp-24f + v * 0x1.921fb6p+1f);
  const F z = r * r;
  F p = tang_splat$(-0x1.dfe85ep-26f);
  p = tang_fma$(p, z, 0x1.747576p-19f);
  p = tang_fma$(p, z, -0x1.a02e42p-13f);
  p = tang_fma$(p, z, 0x1.11114ap-7f);
  p = tang_fma$(p, z, -0x1.555556p-3f);
  r = r + tang_fma$(r * z, p, v * (1.0f - z * (0.5f - z * 0x1.555556p-5f)));
  // Sign: of the fraction, of the multiple's parity, of x.
  const U flip = (up ^ (whole + up) ^ (u >> 31u)) & 1u;
  return tang_f$(tang_u$(r) ^ (flip << 31u));
}
TANG F tang_sin$(F x) {
  if (tang_abs$(x) <= NEAR_SINE) { return tang_sin_near$(x); }
  return tang_sin_far$(x);
}
)";

const char* const narrow_text = R"(
TANG F tang_from_f16(U h) {
  const U m = h & 0x7fffu;
  const U s = (h & 0x8000u) << 16u;
  const U small = tang_u1(tang_real1(tang_int1(m)) * 0x1p-24f);
  const U normal = (m << 13u) + 0x38000000u;
  const U special = 0x7f800000u | ((m & 0x3ffu) << 13u);
  return tang_f1(tang_selu1(m >= 0x7c00u, special, tang_selu1(m < 0x400u, small, normal)) | s);
}
TANG U tang_to_f16(F x) {
  const U u = tang_u1(x);
  const U s = (u >> 16u) & 0x8000u;
  const U a = u & 0x7fffffffu;
  const U small = tang_u1(tang_f1(a) + 0.5f) - 0x3f000000u;
  const U normal = (a + 0xc8000fffu + ((a >> 13u) & 1u)) >> 13u;
  const U big = tang_selu1(a > 0x7f800000u, 0x7e00u, tang_selu1(a >= 0x477ff000u, 0x7c00u, normal));
  return tang_selu1(a < 0x38800000u, small, big) | s;
}
TANG F tang_from_bf16(U h) { return tang_f1(h << 16u); }
TANG U tang_to_bf16(F x) {
  const U u = tang_u1(x);
  return tang_selu1((u & 0x7fffffffu) > 0x7f800000u, (u >> 16u) | 0x40u, (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u);
}
TANG F tang_from_tf32(F x) { return x; }
TANG F tang_to_tf32(F x) {
  const U u = tang_u1(x);
  return tang_f1(tang_selu1((u & 0x7f800000u) == 0x7f800000u, u, (u + 0xfffu + ((u >> 13u) & 1u)) & 0xffffe000u));
}
TANG F tang_from_e5m2(U b) { return tang_from_f16(b << 8u); }
TANG F tang_from_e4m3(U b) {
  const U m = b & 0x7fu;
  const U s = (b & 0x80u) << 24u;
  const U small = tang_u1(tang_real1(tang_int1(m)) * 0x1p-9f);
  const U normal = (m << 20u) + 0x3c000000u;
  return tang_f1(tang_selu1(m == 0x7fu, 0x7fc00000u, tang_selu1(m < 8u, small, normal)) | s);
}
TANG U tang_to_e5m2(F x) {
  const U u = tang_u1(x);
  const U s = (u >> 24u) & 0x80u;
  const U a = u & 0x7fffffffu;
  const U small = tang_u1(tang_f1(a) + 128.0f) - 0x43000000u;
  const U normal = ((a + 0xfffffu + ((a >> 21u) & 1u)) >> 21u) - 448u;
  const U big = tang_selu1(a > 0x7f800000u, 0x7fu, tang_selu1(a >= 0x47700000u, 0x7cu, normal));
  return tang_selu1(a < 0x38800000u, small, big) | s;
}
TANG U tang_to_e4m3(F x) {
  const U u = tang_u1(x);
  const U s = (u >> 24u) & 0x80u;
  const U a = u & 0x7fffffffu;
  const U small = tang_u1(tang_f1(a) + 16384.0f) - 0x46800000u;
  const U normal = ((a + 0x7ffffu + ((a >> 20u) & 1u)) >> 20u) - 960u;
  return tang_selu1(a < 0x3c800000u, small, tang_selu1(a > 0x43e80000u, 0x7fu, normal)) | s;
}
)";

const char* const order_text = R"(
TANG M tang_is_nan1(F x) { return (tang_u1(x) & 0x7fffffffu) > 0x7f800000u; }
TANG F tang_max1(F a, F b) { return tang_sel1(tang_is_nan1(b), b, tang_sel1(a < b, b, a)); }
TANG F tang_min1(F a, F b) { return tang_sel1(tang_is_nan1(b), b, tang_sel1(b < a, b, a)); }
TANG F tang_upper1(F a, F b) { return tang_sel1(a > b, a, b); }
TANG F tang_lower1(F a, F b) { return tang_sel1(a < b, a, b); }
)";

const char* const scalar_macros = R"(
#define tang_sel1(m, a, b) ((m) ? (a) : (b))
#define tang_seli1(m, a, b) ((m) ? (a) : (b))
#define tang_selu1(m, a, b) ((m) ? (a) : (b))
#define tang_dsel1(m, a, b) ((m) ? (a) : (b))
#define tang_less1(a, b) ((a) < (b))
#define tang_equal1(a, b) ((a) == (b))
#define tang_iless1(a, b) ((a) < (b))
#define tang_not1(m) (!(m))
#define tang_both1(a, b) ((a) && (b))
#define tang_splat1(x) (x)
#define tang_ints1(x) (x)
)";

const char* const wide_text = R"(
TANG D tang_dmax1(D a, D b) { return tang_dsel1(b != b, b, tang_dsel1(a < b, b, a)); }
TANG D tang_dmin1(D a, D b) { return tang_dsel1(b != b, b, tang_dsel1(b < a, b, a)); }
TANG D tang_dratio1(D a, D b) { return tang_dsel1(b == 0.0, 0.0, a / b); }
TANG D tang_dsqrt1(D x) { return D_SQRT(x); }
TANG D tang_dfma1(D a, D b, D c) { return D_FMA(a, b, c); }
TANG D tang_dfloor1(D x) { return floor(x); }
TANG D tang_dexp21(D x) { return exp2(x); }
TANG D tang_dlog21(D x) { return log2(x); }
TANG D tang_dsin1(D x) { return sin(x); }
TANG D tang_datan21(D y, D x) { return atan2(y, x); }
// The nearest f32 with a sticky last bit: a second rounding to a narrower format is then exact.
TANG F tang_odd(D d) {
  const F f = (F)d;
  if ((D)f == d || d != d || f - f != 0.0f) { return f; }
  U u = tang_u1(f);
  if (fabs((D)f) > fabs(d)) { u = u - 1u; }
  return tang_f1(u | 1u);
}
)";

namespace {
bool of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

// `TANG T f(T a, T b) {` -> `fn f(a: T, b: T) -> T {`; `const T x = ` -> `let x: T = `; `T x = ` -> `var x: T = `.
std::string names_first(const std::string& line, const Spelling& s) {
  auto word = [&](size_t& at) {
    while (at < line.size() && line[at] == ' ') ++at;
    const size_t from = at;
    while (at < line.size() && of_word(line[at])) ++at;
    return line.substr(from, at - from);
  };
  auto type = [&](const std::string& w) {
    const auto it = s.words.find(w);
    return w.size() == 1 && it != s.words.end() ? it->second : std::string();
  };
  size_t at = 0;
  const std::string indent = line.substr(0, line.find_first_not_of(' ')), first = word(at);
  if (first == "TANG") {
    const std::string result = type(word(at)), name = word(at);
    std::string out = "fn " + name + "(";
    for (++at; line[at] != ')';) {
      const std::string t = type(word(at)), n = word(at);
      out += n + ": " + t;
      if (line[at] == ',') out += ", ", ++at;
    }
    return out + ") -> " + result + line.substr(at + 1);
  }
  const bool constant = first == "const";
  const std::string t = type(constant ? word(at) : first);
  if (t.empty()) return line;
  const std::string name = word(at);
  return indent + (constant ? "let " : "var ") + name + ": " + t + line.substr(at);
}

} // namespace

std::string decimal_float(double v) {
  char s[32];
  std::snprintf(s, sizeof s, "%.9g", double(float(v)));
  // Nine digits of the largest number are above it, which WGSL refuses.
  if (std::isfinite(v) && std::fabs(std::strtod(s, nullptr)) > FLT_MAX) std::snprintf(s, sizeof s, "%.17g", double(float(v)));
  std::string out = s;
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return v < 0 || out[0] == '-' ? "(" + out + "f)" : out + "f";
}

Spelling c_like_spelling() {
  return {{{"F", "float"}, {"I", "int32_t"}, {"U", "uint32_t"}, {"M", "bool"}, {"D", "double"}, {"R", "double"},
           {"Z", "int64_t"}, {"N", "uint64_t"}, {"TO_Z", "(int64_t)"}, {"TO_N", "(uint64_t)"}, {"TO_U", ""},
           {"ZBITS", "64"}, {"NEAR_SINE", "32768.0f"}, {"ZMAX", "INT64_MAX"}, {"ZMIN", "INT64_MIN"}, {"ZTOP", "0x1p63"},
           {"tang_int1", "(int32_t)"}, {"tang_unsigned1", "(uint32_t)"}, {"tang_real1", "(float)"},
           {"tang_real_of_u1", "(float)"}, {"tang_whole1", "(int32_t)"}}};
}

std::string spelled(const std::string& text, const Spelling& s) {
  std::string in;
  for (size_t from = 0; from < text.size();) {
    const size_t end = text.find('\n', from);
    const std::string line = text.substr(from, end - from);
    in += (s.declares_names_first ? names_first(line, s) : line) + "\n";
    from = end + 1;
  }
  std::string out;
  for (size_t at = 0; at < in.size();) {
    if (!of_word(in[at])) {
      out += in[at++];
      continue;
    }
    size_t end = at;
    while (end < in.size() && of_word(in[end])) ++end;
    if (std::isdigit(static_cast<unsigned char>(in[at]))) { // a number, with its fraction and exponent
      while (end < in.size() && (of_word(in[end]) || in[end] == '.' ||
                                 ((in[end] == '-' || in[end] == '+') && in[end - 1] == 'p')))
        ++end;
      const std::string n = in.substr(at, end - at);
      out += !s.hex_floats && n.find('p') != std::string::npos ? decimal_float(std::strtod(n.c_str(), nullptr)) : n;
      at = end;
      continue;
    }
    std::string w = in.substr(at, end - at);
    if (const size_t dollar = w.find('$'); dollar != std::string::npos) w.replace(dollar, 1, s.suffix);
    const auto it = s.words.find(w);
    out += it == s.words.end() ? w : it->second;
    at = end;
  }
  return out;
}

} // namespace tang::emit
