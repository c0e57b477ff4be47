// Walking through the neighbours of a particle, LANES at a time.
#pragma once
#include "tasks.h"
#include "wide.h"

namespace {

constexpr float PI = 3.14159265358979f;

// body.add<tail, half>(places, valid lanes) for LANES neighbours of i at a time, whose records have ``bytes`` each. What fills up a tail is i itself, or lies at
// the origin in the half that is left out: either way it does not count.
template <int bytes, class Body>
inline void each(const viscoil::Near& near, int i, Body&& body) {
    constexpr int bits = __builtin_ctz(bytes);
    const int count = near.count[i];
    const int* row = near.index + int64_t(i) * near.row;
    int k = 0;
    for (; k + LANES <= count; k += LANES) body.template add<false, false>(Places(read(row + k), bits), Mask());
    if (k < count) {
        const Mask valid = first(count - k);
        const Places j(read(row + k, valid, i), bits);
        if (LANES > 8 && count - k <= 8)
            body.template add<true, true>(j, valid);
        else
            body.template add<true, false>(j, valid);
    }
}

}  // namespace
