// Pictures of what was measured, as SVG texts that need nothing else.
#pragma once
#include <string>
#include <vector>

#include "tang/tune/search.hpp"

namespace tang::tune {

struct Mark {
  std::string name;
  double x = 0, y = 0;
  bool chosen = false;
};

// Both axes logarithmic. A point on the diagonal was estimated rightly.
std::string scatter_svg(const std::string& title,
                        const std::vector<Mark>& marks); // x: estimated s, y: measured s
// x: flops a byte of operands, y: flop/s; the roofs of the machine's levels.
std::string roofline_svg(const std::string& title, const std::vector<Mark>& marks, const Machine& m);


struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

// Linear axes; one colour a curve, named beside its last point.
std::string curves_svg(const std::string& title, const std::string& x_name, const std::string& y_name,
                       const std::vector<Curve>& curves);

} // namespace tang::tune
