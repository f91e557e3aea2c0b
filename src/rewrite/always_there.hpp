// Ports all of whose elements exist.
#pragma once
#include "tang/rewrite/edit.hpp"

namespace tang::rewrite {

// Every coordinate of an affine view over these extents lies inside the shape.
bool lies_inside(const std::vector<Form>& view, const std::vector<ir::Extent>& extents,
                 const std::vector<ir::Extent>& shape, const ir::Symbols& symbols);
// An output view reaches every coordinate: each is made of axes of its own, in mixed radix.
bool reaches_all(const std::vector<Form>& view, const std::vector<ir::Extent>& extents,
                 const std::vector<ir::Extent>& shape);
// Nothing is absent in what the port stores: also where a recurrence or an output view fills all of it.
bool always_there(Graph& g, Port p);

} // namespace tang::rewrite
