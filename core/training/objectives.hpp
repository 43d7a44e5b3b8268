// What every solver reports of a point: both objectives, and how far its worst example is from optimal.
#pragma once

namespace larank {

struct Objectives {
    double primal = 0, dual = 0, violation = 0;
};

}  // namespace larank
