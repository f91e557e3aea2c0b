// What every dialect's prelude shares, written once: integers, elementary functions, narrow formats. The text is C
// over a few named types and primitives, which each dialect spells its own way.
#pragma once
#include <map>
#include <string>

namespace tang::emit {

// How a dialect says what the shared text names. Types: F real, I and U 32 bits, M a mask or condition, Z and N the
// dialect's widest integers, R its widest real. `words` are whole identifiers; what a dialect does not respell
// stays and is defined by its head.
struct Spelling {
  std::map<std::string, std::string> words;
  std::string suffix = "1";       // of functions, for $
  bool declares_names_first = false; // `fn f(a: T) -> T`, `let x: T = ..`: WGSL
  bool hex_floats = true;
};

std::string spelled(const std::string& text, const Spelling& s);
Spelling c_like_spelling(); // of 64-bit integers, `(type)` casts and f64

// Over Z and N, with ZMAX, ZMIN, ZTOP (2 to the number of value bits, as an R) and ZBITS.
extern const char* const integer_text;
// Over F, I, U, M and the primitives tang_{sel,less,equal,iless,not,both,splat,ints,fma,upper,lower,u,f,real,whole,
// int,unsigned}: ratio, abs, floor; then exp2, log2, sin of |x| <= 2^15 as tang_sin_near, atan2.
extern const char* const simple_text;
// elementary_text needs one of the two above it: where a multiply-add rounds once, and where it may round twice.
extern const char* const fused_pi_text;
extern const char* const split_pi_text;
extern const char* const scale_text; // p 2^n
extern const char* const exp2_text;  // a polynomial: C has a table instead
extern const char* const elementary_text; // after an exp2
// The sine of any x, reduced in 32-bit integers beyond NEAR_SINE: 2^15, or 1.5 where the compiler may reassociate what
// elementary_text relies on.
extern const char* const far_sine_text;
// tang_from_X(U) and tang_to_X(F) of every narrow format; scalar.
extern const char* const narrow_text;
// The last primitives that a GPU's scalars are made of, over tang_{sel,u}: max, min, is_nan, upper, lower.
extern const char* const order_text;
extern const char* const scalar_macros; // the primitives of masks and choices, in dialects that have macros
extern const char* const wide_text; // the same names over f64, for dialects that have it

} // namespace tang::emit
