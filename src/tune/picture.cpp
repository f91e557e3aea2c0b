#include "tang/tune/picture.hpp"

#include <algorithm>
#include <cmath>

namespace tang::tune {

namespace {
std::string number(const char* format, double v) {
  char s[64];
  std::snprintf(s, sizeof s, format, v);
  return s;
}

std::string escaped(const std::string& s) {
  std::string out;
  for (char c : s)
    out += c == '<'                               ? "&lt;"
           : c == '>'                             ? "&gt;"
           : c == '&'                             ? "&amp;"
           : static_cast<unsigned char>(c) < 0x20 ? " "
                                                  : std::string(1, c);
  return out;
}

std::string with_prefix(double v, const char* unit) {
  static constexpr std::pair<double, const char*> all[] = {
      {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
  for (auto& [scale, prefix] : all)
    if (v >= 0.999 * scale) return number("%g", v / scale) + " " + prefix + unit;
  return number("%g", v) + " " + unit;
}

// A plane with logarithmic axes, from a power of ten to another.
class Plane {
public:
  Plane(const std::string& title, const std::string& x_name, const std::string& y_name, double x0, double x1,
        double y0, double y1)
      : x0_(std::floor(std::log10(x0))), x1_(std::max(x0_ + 1, std::ceil(std::log10(x1)))),
        y0_(std::floor(std::log10(y0))), y1_(std::max(y0_ + 1, std::ceil(std::log10(y1)))) {
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"480\" viewBox=\"0 0 720 480\" "
           "font-family=\"sans-serif\" font-size=\"12\">"
           "<rect width=\"720\" height=\"480\" fill=\"#fff\"/><text x=\"80\" y=\"24\" font-size=\"15\">" +
           escaped(title) + "</text><text x=\"380\" y=\"470\" text-anchor=\"middle\">" + escaped(x_name) +
           "</text><text transform=\"translate(18 240) rotate(-90)\" text-anchor=\"middle\">" +
           escaped(y_name) + "</text>\n";
  }

  double x(double v) const { return 80 + 610 * (std::log10(v) - x0_) / (x1_ - x0_); }

  double y(double v) const { return 440 - 400 * (std::log10(v) - y0_) / (y1_ - y0_); }

  void grid(const char* x_unit, const char* y_unit) {
    for (double e = x0_; e <= x1_; ++e) {
      line(std::pow(10, e), std::pow(10, y0_), std::pow(10, e), std::pow(10, y1_), "#ddd");
      out_ += "<text x=\"" + number("%.1f", x(std::pow(10, e))) + "\" y=\"454\" text-anchor=\"middle\">" +
              with_prefix(std::pow(10, e), x_unit) + "</text>\n";
    }
    for (double e = y0_; e <= y1_; ++e) {
      line(std::pow(10, x0_), std::pow(10, e), std::pow(10, x1_), std::pow(10, e), "#ddd");
      out_ += "<text x=\"74\" y=\"" + number("%.1f", y(std::pow(10, e)) + 4) + "\" text-anchor=\"end\">" +
              with_prefix(std::pow(10, e), y_unit) + "</text>\n";
    }
  }

  void line(double xa, double ya, double xb, double yb, const char* color, const std::string& label = "") {
    out_ += "<line x1=\"" + number("%.1f", x(xa)) + "\" y1=\"" + number("%.1f", y(ya)) + "\" x2=\"" +
            number("%.1f", x(xb)) + "\" y2=\"" + number("%.1f", y(yb)) + "\" stroke=\"" + color + "\"/>\n";
    if (!label.empty()) text(xa, ya, label, "#555");
  }

  void text(double at_x, double at_y, const std::string& s, const char* color) {
    out_ += "<text x=\"" + number("%.1f", x(at_x) + 4) + "\" y=\"" + number("%.1f", y(at_y) - 4) +
            "\" fill=\"" + color + "\">" + escaped(s) + "</text>\n";
  }

  void mark(const Mark& m) {
    out_ += "<circle cx=\"" + number("%.1f", x(m.x)) + "\" cy=\"" + number("%.1f", y(m.y)) + "\" r=\"" +
            (m.chosen ? "6" : "3.5") + "\" fill=\"" + (m.chosen ? "#c33" : "#36a") +
            "\" fill-opacity=\"0.7\"><title>" + escaped(m.name) + "</title></circle>\n";
  }

  double left() const { return std::pow(10, x0_); }

  double right() const { return std::pow(10, x1_); }

  double low() const { return std::pow(10, y0_); }

  double high() const { return std::pow(10, y1_); }

  std::string done() { return out_ + "</svg>\n"; }

private:
  double x0_, x1_, y0_, y1_;
  std::string out_;
};

struct Range {
  double low = HUGE_VAL, high = 0;

  void add(double v) {
    if (v > 0 && std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  }
};

bool drawable(const Mark& m) { return m.x > 0 && m.y > 0 && std::isfinite(m.x) && std::isfinite(m.y); }
} // namespace

std::string scatter_svg(const std::string& title, const std::vector<Mark>& marks) {
  Range r;
  for (auto& m : marks) r.add(m.x), r.add(m.y);
  if (!(r.high > 0)) r.low = 1e-6, r.high = 1;
  Plane p(title, "estimated", "measured", r.low, r.high, r.low, r.high);
  p.grid("s", "s");
  p.line(p.left(), p.left(), p.right(), p.right(), "#999");
  for (auto& m : marks)
    if (drawable(m)) p.mark(m);
  return p.done();
}

std::string roofline_svg(const std::string& title, const std::vector<Mark>& marks, const Machine& m) {
  Range x, y;
  for (auto& k : marks) x.add(k.x), y.add(k.y);
  x.add(0.1), x.add(m.fma.best / m.levels.back().read.best * 4), y.add(m.fma.best);
  Plane p(title, "flop a byte of operands and results", "flop/s", x.low, x.high, y.low, y.high);
  p.grid("flop/B", "flop/s");
  for (auto& l : m.levels) { // a roof rises to the right until arithmetic binds
    const double knee = m.fma.best / l.read.best, from = std::max(p.left(), p.low() / l.read.best);
    if (knee > from)
      p.line(from, from * l.read.best, std::min(knee, p.right()), std::min(knee, p.right()) * l.read.best,
             "#888", l.name);
  }
  p.line(p.left(), m.fma.best, p.right(), m.fma.best, "#444", "multiply-adds");
  for (auto& k : marks)
    if (drawable(k)) p.mark(k);
  return p.done();
}

} // namespace tang::tune
