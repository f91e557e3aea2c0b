#include "tang/schedule/schedule.hpp"

namespace tang::schedule {

Schedule as_written() {
  Schedule s;
  s.share_contractions = false;
  s.epilogues = false;
  return s;
}

} // namespace tang::schedule
