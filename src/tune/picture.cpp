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

// One axis: where its ends are, which values are marked, and how far along a value lies.
class Ruler {
public:
  static Ruler logarithmic(double low, double high) {
    const double first = std::floor(std::log10(low));
    Ruler r(true, first, std::max(first + 1, std::ceil(std::log10(high))));
    return r;
  }

  // About six steps of 1, 2 or 5 times a power of ten.
  static Ruler linear(double low, double high) {
    const double raw = std::max(high - low, 1e-9) / 6, power = std::pow(10, std::floor(std::log10(raw)));
    const double step = power * (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1);
    Ruler r(false, std::floor(low / step), std::ceil(high / step));
    r.step_ = step;
    r.last_ = std::max(r.last_, r.first_ + 1);
    return r;
  }

  double along(double v) const {
    return ((log_ ? std::log10(v) : v / step_) - first_) / (last_ - first_);
  }

  double value(double mark) const { return log_ ? std::pow(10, mark) : mark * step_; }

  std::vector<double> marks() const {
    std::vector<double> out;
    for (double m = first_; m <= last_; ++m) out.push_back(value(m));
    return out;
  }

  double low() const { return value(first_); }

  double high() const { return value(last_); }

private:
  Ruler(bool log, double first, double last) : log_(log), first_(first), last_(last) {}

  bool log_;
  double first_, last_, step_ = 1;
};

// A plane with two axes.
class Plane {
public:
  Plane(const std::string& title, const std::string& x_name, const std::string& y_name, Ruler x, Ruler y)
      : x_(x), y_(y) {
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"480\" viewBox=\"0 0 720 480\" "
           "font-family=\"sans-serif\" font-size=\"12\">"
           "<rect width=\"720\" height=\"480\" fill=\"#fff\"/><text x=\"80\" y=\"24\" font-size=\"15\">" +
           escaped(title) + "</text><text x=\"380\" y=\"470\" text-anchor=\"middle\">" + escaped(x_name) +
           "</text><text transform=\"translate(18 240) rotate(-90)\" text-anchor=\"middle\">" +
           escaped(y_name) + "</text>\n";
  }

  double x(double v) const { return 80 + 610 * x_.along(v); }

  double y(double v) const { return 440 - 400 * y_.along(v); }

  void grid(const char* x_unit, const char* y_unit) {
    for (double v : x_.marks()) {
      line(v, low(), v, high(), "#ddd");
      out_ += "<text x=\"" + number("%.1f", x(v)) + "\" y=\"454\" text-anchor=\"middle\">" + shown(v, x_unit) +
              "</text>\n";
    }
    for (double v : y_.marks()) {
      line(left(), v, right(), v, "#ddd");
      out_ += "<text x=\"74\" y=\"" + number("%.1f", y(v) + 4) + "\" text-anchor=\"end\">" + shown(v, y_unit) +
              "</text>\n";
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

  void curve(const std::vector<std::pair<double, double>>& points, const char* color) {
    out_ += "<polyline fill=\"none\" stroke=\"" + std::string(color) + "\" stroke-width=\"1.5\" points=\"";
    for (auto& [px, py] : points) out_ += number("%.1f", x(px)) + "," + number("%.1f", y(py)) + " ";
    out_ += "\"/>\n";
  }

  double left() const { return x_.low(); }

  double right() const { return x_.high(); }

  double low() const { return y_.low(); }

  double high() const { return y_.high(); }

  std::string done() { return out_ + "</svg>\n"; }

private:
  static std::string shown(double v, const char* unit) {
    return *unit ? with_prefix(v, unit) : number("%g", v);
  }

  Ruler x_, y_;
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
  const Ruler both = Ruler::logarithmic(r.low, r.high);
  Plane p(title, "estimated", "measured", both, both);
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
  Plane p(title, "flop a byte of operands and results", "flop/s", Ruler::logarithmic(x.low, x.high),
          Ruler::logarithmic(y.low, y.high));
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

std::string curves_svg(const std::string& title, const std::string& x_name, const std::string& y_name,
                       const std::vector<Curve>& curves) {
  double x0 = HUGE_VAL, x1 = -HUGE_VAL, y0 = HUGE_VAL, y1 = -HUGE_VAL;
  std::vector<Curve> drawn;
  for (auto& c : curves) {
    drawn.push_back({c.name, {}});
    for (auto& [x, y] : c.points) {
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      x0 = std::min(x0, x), x1 = std::max(x1, x), y0 = std::min(y0, y), y1 = std::max(y1, y);
      drawn.back().points.push_back({x, y});
    }
  }
  if (x0 > x1) x0 = y0 = 0, x1 = y1 = 1;
  Plane p(title, x_name, y_name, Ruler::linear(x0, x1), Ruler::linear(y0, y1));
  p.grid("", "");
  static constexpr const char* colors[] = {"#36a", "#c33", "#283", "#a63"};
  for (size_t k = 0; k < drawn.size(); ++k) {
    if (drawn[k].points.empty()) continue;
    const char* color = colors[k % 4];
    p.curve(drawn[k].points, color);
    const auto& [x, y] = drawn[k].points.back();
    p.text(x - 0.14 * (x1 - x0), y + 0.04 * double(k + 1) * (y1 - y0), drawn[k].name, color);
  }
  return p.done();
}

} // namespace tang::tune
