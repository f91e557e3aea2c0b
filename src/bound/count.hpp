// Exact counts: live points of a domain, and distinct images of them under a linear map.
#pragma once
#include "tang/bound/nest.hpp"

namespace tang::bound {

Result<int64_t> count_points(const std::vector<int64_t>& extents, const ir::Domain& domain);
// |{ rows x : x in the box, domain holds }|
Result<int64_t> count_images(const std::vector<int64_t>& extents, const ir::Domain& domain,
                             const std::vector<Row>& rows);
// |{ sum k_i x_i : 0 <= x_i < n_i }|
Result<int64_t> count_sums(std::vector<std::pair<int64_t, int64_t>> coefficient_and_extent);

} // namespace tang::bound
