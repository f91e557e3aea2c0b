// A finding made smaller: its sequence of choices is cut and lowered as long as a fault of the same kind
// remains. Private to the room.
#pragma once
#include "tang/fuzz/campaign.hpp"

namespace tang::fuzz {

Finding shrink(Finding f, const Settings& s, int tries = 300);
std::string write_finding(const Finding& f, const Settings& s); // the file's path

} // namespace tang::fuzz
