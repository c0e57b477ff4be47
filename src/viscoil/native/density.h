// λ and Δx of the density constraint, eqs. 9 to 14 of constraints/density.py, where all particles share one volume and mass.
#pragma once
#include <cmath>
#include <cstring>

#include "each.h"

namespace {

template <bool poly6>
struct Density {
    const float* places;
    Wide x, y, z, inverse_h, inverse_h2, smallest;
    Wide weights = all(0), ox = all(0), oy = all(0), oz = all(0), squares = all(0);

    template <bool tail, bool half>
    inline void add(const Places& j, Mask valid) {
        Wide a, b, c, unused;
        fetch<half>(places, j, a, b, c, unused);
        const Wide dx = x - a, dy = y - b, dz = z - c, r2 = dot(dx, dy, dz);
        const Wide inverse = inverse_root(largest(r2, smallest));
        Wide s = largest(fnma(r2 * inverse, inverse_h, all(1)), all(0));
        if (tail) s = keep(valid, s);
        const Wide s2 = s * s, g = s2 * inverse;
        Wide m = poly6 ? largest(fnma(r2, inverse_h2, all(1)), all(0)) : s;
        if (poly6 && tail) m = keep(valid, m);
        weights = fma(poly6 ? m * m : s2, m, weights);
        ox = fma(g, dx, ox);
        oy = fma(g, dy, oy);
        oz = fma(g, dz, oz);
        squares = fma(g * g, r2, squares);
    }
};

constexpr int BLOCK = 16;  // particles whose sums are kept, to work out their multipliers together

struct Sums {
    alignas(64) float four[BLOCK][4];  // Σ s²/r x_ij, Σ W
    alignas(64) Wide squares[BLOCK];   // not summed over lanes yet
    alignas(64) float square[BLOCK];
};

// By how much Λ of particle i changes, where ``value`` is what Jacobi's iteration would change it by; see gather_momentum in
// constraints/acceleration.py.
inline float gathered(const viscoil::DensityTask& t, int64_t i, float value) {
    float* own = t.pressure + 2 * i;  // −Λ/Δt², −m/Δt²
    if (t.done == 0) {
        const float lasting = 1.3f * own[1] + 0.02f * own[0];
        own[1] = lasting < own[0] ? lasting : own[0];
    }
    const float kept = -t.square * own[0], start = -t.warm * t.square * own[1], last = t.multiplier[i];
    const float before = t.done == 0 ? start : t.done == 1 ? last : kept;
    const float sum = before + t.momentum * (t.done == 0 ? 0 : t.done == 1 ? last - start : last) + t.gain * value;
    const float after = sum < 0 ? sum : 0;
    if (t.done > 0) own[0] = -after / t.square;
    return t.done == 0 ? after : after - before;
}

// λ (11) and max(C, 0) of the particles begin..begin + n from their sums.
inline void finish(const viscoil::DensityTask& t, int begin, int n, float weight, float slope, Sums& sums_of) {
    for (int q = 0; q < BLOCK; q += 4) {
        const Wide* s = sums_of.squares + q;
        _mm_store_ps(sums_of.square + q, sums(s[0], s[1], s[2], s[3]));
    }
    const float *w = t.inverse_mass + begin, *volume = t.volume + begin, *wall = t.wall + begin, *clear = t.clear + begin;
    const float *toward = t.wall_gradient + 3 * int64_t(begin), reach = t.walled ? t.support : -__builtin_inff();
    const bool unilateral = t.unilateral;
    float multiplier[BLOCK], error[BLOCK], lost[BLOCK];
    for (int q = 0; q < n; q++) {
        const float* sum = sums_of.four[q];
        const bool beside = clear[q] < reach;  // what is kept for others is not meant for them
        const float g = volume[q] * slope, ox = (beside ? toward[3 * q] : 0) + g * sum[0];
        const float oy = (beside ? toward[3 * q + 1] : 0) + g * sum[1], oz = (beside ? toward[3 * q + 2] : 0) + g * sum[2];
        const float excess = volume[q] * weight * (1 + sum[3]) + (beside ? wall[q] : 0) - 1;
        const float moves = w[q] > 0 ? 1.0f : 0.0f;
        error[q] = moves * (excess > 0 ? excess : 0);
        const float stiffness = g * g * sums_of.square[q] + ox * ox + oy * oy + oz * oz, soft = t.share * stiffness;
        const float below = stiffness + (soft > t.softness ? soft : t.softness);
        multiplier[q] = -moves * (unilateral ? error[q] : excess) / (below * (w[q] > 0 ? w[q] : 1.0f));
        lost[q] = viscoil::unless_lost(0, moves * (excess + stiffness));
    }
    for (int q = 0; q < n && t.done >= 0; q++)
        if (w[q] > 0) multiplier[q] = gathered(t, begin + q, multiplier[q]);
    for (int q = 0; q < n; q++) {
        multiplier[q] += lost[q];
        const __m128 x = _mm_load_ps(t.places + 4 * int64_t(begin + q));
        _mm_store_ps(t.with_multipliers + 4 * int64_t(begin + q), _mm_insert_ps(x, _mm_set_ss(multiplier[q]), 0x30));
        t.multiplier[begin + q] = multiplier[q];
    }
    for (int q = 0; t.error && q < n; q++) t.error[begin + q] = error[q];
}

template <bool poly6>
void multipliers(const viscoil::DensityTask& t, int begin, int end) {
    const float h = t.support, weight = (poly6 ? 315.0f / (64.0f * PI) : 15.0f / PI) / (h * h * h);
    const float slope = -45.0f / PI / (h * h * h * h);
    const Wide inverse_h = all(1 / h), inverse_h2 = all(1 / (h * h)), smallest = all(1e-12f * h * h);
    const float *places = t.places, *w = t.inverse_mass;
    const viscoil::Near near = t.near;
    Sums sums_of;
    for (int first = begin; first < end; first += BLOCK) {
        const int n = end - first < BLOCK ? end - first : BLOCK;
        for (int q = 0; q < n; q++) {
            const float* at = places + 4 * int64_t(first + q);
            Density<poly6> d{places, all(at[0]), all(at[1]), all(at[2]), inverse_h, inverse_h2, smallest};
            if (w[first + q] > 0) each<16>(near, first + q, d);
            _mm_store_ps(sums_of.four[q], sums(d.ox, d.oy, d.oz, d.weights));
            sums_of.squares[q] = d.squares;
        }
        for (int q = n; q < BLOCK; q++) sums_of.squares[q] = all(0);
        finish(t, first, n, weight, slope, sums_of);
    }
}

void multiplier_pass(const void* task, int begin, int end) {
    const viscoil::DensityTask& t = *static_cast<const viscoil::DensityTask*>(task);
    t.kernel == 1 ? multipliers<true>(t, begin, end) : multipliers<false>(t, begin, end);
}

template <bool repels>
struct Correction {
    const float* places;
    Wide x, y, z, own, inverse_h, inverse_h2, smallest, repulsion, ratio;
    int power;
    Wide tx = all(0), ty = all(0), tz = all(0);
    Mask touching = none();

    template <bool tail, bool half>
    inline void add(const Places& j, Mask valid) {
        Wide a, b, c, other;
        fetch<half>(places, j, a, b, c, other);
        const Wide dx = x - a, dy = y - b, dz = z - c, r2 = dot(dx, dy, dz);
        const Mask close = less(r2, smallest);
        touching = either(touching, tail ? both(close, valid) : close);
        const Wide inverse = inverse_root(largest(r2, smallest));
        Wide s = largest(fnma(r2 * inverse, inverse_h, all(1)), all(0));
        if (tail) s = keep(valid, s);
        Wide weight = own + other;
        if (repels) {
            const Wide m = largest(fnma(r2, inverse_h2, all(1)), all(0)), p = ratio * m * m * m;
            Wide strength = repulsion;
            for (int n = 0; n < power; n++) strength = strength * p;
            weight = weight - strength;
        }
        const Wide g = weight * (s * s) * inverse;
        tx = fma(g, dx, tx);
        ty = fma(g, dy, ty);
        tz = fma(g, dz, tz);
    }
};

// A tiny fixed displacement between two particles at the same place, opposite for the two of them (density.coincident).
inline void coincident(int a, int b, float h, float* d) {
    const uint32_t low = uint32_t(a < b ? a : b), high = uint32_t(a < b ? b : a);
    uint32_t m = (low * 0x9E3779B1u) ^ (high * 0x85EBCA77u);
    m = (m ^ (m >> 15)) * 0xC2B2AE3Du;
    const float x = float(m & 1023) - 511.5f, y = float(m >> 10 & 1023) - 511.5f, z = float(m >> 20 & 1023) - 511.5f;
    const float size = (a < b ? 1.0f : -1.0f) * 1e-6f * h / std::sqrt(x * x + y * y + z * z);
    d[0] = size * x;
    d[1] = size * y;
    d[2] = size * z;
}

// The sum with the part of coincident neighbours, which need a direction made up for them. Hardly ever needed.
inline __m128 with_coincident(const viscoil::DensityTask& t, int i, __m128 sum) {
    alignas(16) float total[4];
    _mm_store_ps(total, sum);
    const float h = t.support, touching = 1e-12f * h * h, *xi = t.with_multipliers + 4 * int64_t(i);
    const int* row = t.near.index + int64_t(i) * t.near.row;
    for (int k = 0; k < t.near.count[i]; k++) {
        const float* xj = t.with_multipliers + 4 * int64_t(row[k]);
        const float d[3] = {xi[0] - xj[0], xi[1] - xj[1], xi[2] - xj[2]};
        const float r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
        if (r2 < touching) {
            const float ratio = 315.0f / (64.0f * PI) / (h * h * h) * t.reference;
            float strength = t.repulsion / t.inverse_mass[i], away[3];
            for (int n = 0; n < t.power; n++) strength *= ratio;
            const float s = 1 - r2 * 1e6f / (h * h);
            const float g = (xi[3] + xj[3] - strength) * (s * s) * 1e6f / h;
            coincident(t.id[i], t.id[row[k]], h, away);
            for (int a = 0; a < 3; a++) total[a] += g * (away[a] - d[a]);
        }
    }
    return _mm_load_ps(total);
}

// x_i ← x_i + Δx_i (14): whoever reads a place reads its copy.
template <bool repels>
void corrections(const viscoil::DensityTask& t, int begin, int end) {
    const float h = t.support, slope = -45.0f / PI / (h * h * h * h);
    const Wide inverse_h = all(1 / h), inverse_h2 = all(1 / (h * h)), smallest = all(1e-12f * h * h);
    const Wide ratio = all(315.0f / (64.0f * PI) / (h * h * h) * t.reference);
    const float *places = t.with_multipliers, *inverse_mass = t.inverse_mass, *volume = t.volume;
    const float reach = t.walled ? t.support : -__builtin_inff();
    float* clear = t.clear;
    const viscoil::Near near = t.near;
    const int power = t.power;
    for (int i = begin; i < end; i++) {
        const float *at = places + 4 * int64_t(i), w = inverse_mass[i];
        if (w > 0) {
            Correction<repels> c{places,    all(at[0]), all(at[1]), all(at[2]),             all(at[3]),
                                 inverse_h, inverse_h2, smallest,   all(t.repulsion / w), ratio,      power};
            each<16>(near, i, c);
            __m128 sum = sums(c.tx, c.ty, c.tz, c.tz);
            if (any(c.touching)) sum = with_coincident(t, i, sum);
            const __m128 toward = clear[i] < reach ? read3(t.wall_gradient + 3 * int64_t(i)) : _mm_setzero_ps();
            const __m128 pull = _mm_fmadd_ps(_mm_set1_ps(volume[i] * slope), sum, _mm_mul_ps(_mm_set1_ps(at[3]), toward));
            const __m128 change = _mm_mul_ps(_mm_set1_ps(w), pull);
            write3(t.x + 3 * int64_t(i), _mm_add_ps(_mm_load_ps(at), change));
            clear[i] -= _mm_cvtss_f32(_mm_sqrt_ss(_mm_dp_ps(change, change, 0x71)));
        }
    }
}

void correction_pass(const void* task, int begin, int end) {
    const viscoil::DensityTask& t = *static_cast<const viscoil::DensityTask*>(task);
    t.repulsion != 0 ? corrections<true>(t, begin, end) : corrections<false>(t, begin, end);
}

}  // namespace
