// Places and velocities: brought into four floats each, and smoothed (XSPH, eq. 17).
#pragma once
#include "each.h"

namespace {

void pack_pass(const void* task, int begin, int end) {
    const viscoil::PackTask& t = *static_cast<const viscoil::PackTask*>(task);
    for (int64_t i = begin; i < end; i++) {
        _mm_store_ps(t.out + 4 * i, read3(t.vector + 3 * i));
    }
}

struct Smoothing {
    const float *places, *motions;
    Wide x, y, z, u, v, w, inverse_h2;
    Wide tx = all(0), ty = all(0), tz = all(0);

    template <bool tail, bool half>
    inline void add(const Places& j, Mask valid) {
        Wide a, b, c, unused;
        fetch<half>(places, j, a, b, c, unused);
        const Wide dx = x - a, dy = y - b, dz = z - c;
        Wide s = largest(fnma(dot(dx, dy, dz), inverse_h2, all(1)), all(0));
        if (tail) s = keep(valid, s);
        const Wide weight = s * s * s;
        fetch<half>(motions, j, a, b, c, unused);
        tx = fma(weight, a - u, tx);
        ty = fma(weight, b - v, ty);
        tz = fma(weight, c - w, tz);
    }
};

void xsph_pass(const void* task, int begin, int end) {
    const viscoil::XsphTask& t = *static_cast<const viscoil::XsphTask*>(task);
    const float h = t.support, scale = t.strength * 315.0f / (64.0f * PI) / (h * h * h);
    const Wide inverse_h2 = all(1 / (h * h));
    const float *places = t.places, *motions = t.motions, *inverse_mass = t.inverse_mass, *volume = t.volume;
    const viscoil::Near near = t.near;
    for (int i = begin; i < end; i++) {
        const float *x = places + 4 * int64_t(i), *u = motions + 4 * int64_t(i);
        __m128 v = _mm_load_ps(u);
        if (inverse_mass[i] > 0 && scale != 0) {
            Smoothing s{places, motions, all(x[0]), all(x[1]), all(x[2]), all(u[0]), all(u[1]), all(u[2]), inverse_h2};
            each<16>(near, i, s);
            v = _mm_fmadd_ps(_mm_set1_ps(volume[i] * scale), sums(s.tx, s.ty, s.tz, s.tz), v);
        }
        write3(t.velocity + 3 * int64_t(i), v);
        write3(t.position + 3 * int64_t(i), _mm_load_ps(x));
    }
}

}  // namespace
