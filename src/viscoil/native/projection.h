// The passes of the velocity projection, eqs. of constraints/friction.py, where all particles share one volume and mass.
#pragma once
#include "each.h"

namespace {

using viscoil::ProjectTask;

// g of cubic_gradient without its constant 48/(π h⁵); 0 beyond the support. inverse: 1/r.
inline Wide cubic_slope(Wide r2, Wide inverse, Wide minus_h, Wide inverse_h) {
    const Wide q = r2 * inverse * inverse_h, s = largest(all(1) - q, all(0));
    return where(less(all(0.5f), q), s * s * (inverse * minus_h), fma(all(3), q, all(-2)));
}

// Velocities into the records. The places and viscosities stay for the whole round.
void lay_out_pass(const void* task, int begin, int end) {
    const ProjectTask& t = *static_cast<const ProjectTask*>(task);
    for (int64_t i = begin; i < end; i++) {
        const __m128 x = read3(t.x + 3 * i);
        const __m128 place = _mm_insert_ps(x, _mm_load_ss(t.viscosity + i), 0x30);
        _mm_store_ps(t.before + 8 * i, place);
        _mm_store_ps(t.after + 8 * i, place);
        _mm_store_ps(t.before + 8 * i + 4, read3(t.u + 3 * i));
    }
}

struct Divergence {
    const float* records;
    Wide x, y, z, u, v, w, minus_h, inverse_h, smallest;
    Wide total = all(0);

    template <bool tail, bool half>
    inline void add(const Places& j, Mask valid) {
        Wide a, b, c, unused;
        fetch<half>(records, j, a, b, c, unused);
        const Wide dx = x - a, dy = y - b, dz = z - c, r2 = dot(dx, dy, dz);
        Wide g = cubic_slope(r2, inverse_root(largest(r2, smallest)), minus_h, inverse_h);
        if (tail) g = keep(valid, g);
        fetch<half>(records + 4, j, a, b, c, unused);
        total = fma(g, fma(dz, c - w, fma(dy, b - v, dx * (a - u))), total);
    }
};

// q_i = b ν_i div u_i, behind the velocities of the other records.
void pressure_pass(const void* task, int begin, int end) {
    const ProjectTask& t = *static_cast<const ProjectTask*>(task);
    const float h = t.support, slope = 48.0f / PI / (h * h * h * h * h);
    const Wide minus_h = all(-h), inverse_h = all(1 / h), smallest = all(1e-12f * h * h);
    const viscoil::Near near = t.near;
    const float* records = t.before;
    for (int i = begin; i < end; i++) {
        const float *at = records + 8 * int64_t(i), nu = t.viscosity[i];
        float q = t.bulk[t.material[i]] * (nu > 0 ? nu : 0);
        if (q > 0) {
            Divergence d{records,    all(at[0]), all(at[1]), all(at[2]), all(at[4]), all(at[5]), all(at[6]),
                         minus_h, inverse_h, smallest};
            each<32>(near, i, d);
            q *= t.volume[i] * slope * _mm_cvtss_f32(sums(d.total, d.total, d.total, d.total));
        }
        const __m128 u = _mm_load_ps(at + 4);
        _mm_store_ps(t.after + 8 * int64_t(i) + 4, _mm_insert_ps(u, _mm_set_ss(q), 0x30));
    }
}

template <bool even>
struct Friction {
    const float* records;
    Wide x, y, z, u, v, w, q, own, rub, half_pairs, minus_h, inverse_h, smallest, steepest;
    Wide tx = all(0), ty = all(0), tz = all(0);

    template <bool tail, bool half>
    inline void add(const Places& j, Mask valid) {
        Wide a, b, c, other;
        fetch<half>(records, j, a, b, c, other);
        const Wide dx = x - a, dy = y - b, dz = z - c, r2 = dot(dx, dy, dz);
        const Wide inverse = inverse_root(largest(r2, smallest));
        Wide g = cubic_slope(r2, inverse, minus_h, inverse_h);
        if (tail) g = keep(valid, g);
        Wide with = rub;
        if (!even) {
            const Wide zero = all(0);
            const Wide mixed = all(2) * fma(largest(own, zero), largest(zero - other, zero),
                                            largest(other, zero) * largest(zero - own, zero));
            with = half_pairs * where(either(less(own, zero), less(other, zero)), mixed, own + other);
        }
        Wide bulk;
        fetch<half>(records + 4, j, a, b, c, bulk);
        const Wide along = fma(dz, w - c, fma(dy, v - b, dx * (u - a)));
        const Wide pull = g * (fma(with * along, least(inverse * inverse, steepest), q) + bulk);
        tx = fma(pull, dx, tx);
        ty = fma(pull, dy, ty);
        tz = fma(pull, dz, tz);
    }
};

// f_i/V_i of the velocities in ``after``.
template <bool even>
struct Drag {
    const ProjectTask& t;
    const viscoil::Near near = t.near;
    const float* const records = t.after;
    const float h = t.support, slope = 48.0f / PI / (h * h * h * h * h);
    const Wide half_pairs = all(0.5f * t.pairs), minus_h = all(-h), inverse_h = all(1 / h);
    const Wide smallest = all(1e-12f * h * h), steepest = all(1e6f / (h * h));

    inline __m128 of(int i) const {
        const float* at = records + 8 * int64_t(i);
        Friction<even> f{records,    all(at[0]), all(at[1]),            all(at[2]), all(at[4]), all(at[5]),
                         all(at[6]), all(at[7]), all(at[3]), all(t.pairs * at[3]), half_pairs, minus_h,
                         inverse_h,  smallest,   steepest};
        each<32>(near, i, f);
        return _mm_mul_ps(_mm_set1_ps(t.volume[i] * slope), sums(f.tx, f.ty, f.tz, f.tz));
    }
};

inline float dot3(__m128 a, __m128 b) { return _mm_cvtss_f32(_mm_dp_ps(a, b, 0x71)); }

// What of v a held particle may still do.
inline __m128 allowed(__m128 v, const float* normal, int held) {
    if (held == 0) return v;
    if (held == 2) return _mm_setzero_ps();
    const __m128 n = read3(normal), along = _mm_mul_ps(n, _mm_set1_ps(dot3(n, v)));
    return held == 1 ? _mm_sub_ps(v, along) : along;
}

// r = b − A u, z = w r into the records, and γ.
template <bool even>
void residuals(const ProjectTask& t, int begin, int end) {
    const Drag<even> drag{t};
    double gamma = 0;
    for (int i = begin; i < end; i++) {
        const int64_t at = 3 * int64_t(i);
        const float w = t.inverse_mass[i];
        __m128 r = _mm_setzero_ps(), z = r;
        if (w > 0) {
            const __m128 missing = _mm_mul_ps(_mm_sub_ps(read3(t.free + at), read3(t.u + at)), _mm_set1_ps(1 / w));
            r = _mm_fmadd_ps(_mm_set1_ps(t.dt), drag.of(i), missing);
            z = _mm_mul_ps(_mm_set1_ps(w), allowed(r, t.normal + at, t.held[i]));
            gamma += dot3(z, z) / w;
        }
        write3(t.residual + at, r);
        write3(t.search + at, z);
        write3(t.direction + at, _mm_setzero_ps());
        write3(t.direction_image + at, _mm_setzero_ps());
        _mm_store_ps(t.before + 8 * int64_t(i) + 4, z);
    }
    t.partial[2 * (begin / viscoil::GRAIN)] = gamma;
}

// A z, γ = r·z and δ = z·A z.
template <bool even>
void images(const ProjectTask& t, int begin, int end) {
    const Drag<even> drag{t};
    double gamma = 0, delta = 0;
    for (int i = begin; i < end; i++) {
        const int64_t at = 3 * int64_t(i);
        const float w = t.inverse_mass[i];
        __m128 image = _mm_setzero_ps();
        if (w > 0) {
            const __m128 z = read3(t.search + at);
            image = _mm_fnmadd_ps(_mm_set1_ps(t.dt), drag.of(i), _mm_mul_ps(z, _mm_set1_ps(1 / w)));
            gamma += dot3(z, z) / w;
            delta += dot3(z, image);
        }
        write3(t.image + at, image);
    }
    t.partial[2 * (begin / viscoil::GRAIN)] = gamma;
    t.partial[2 * (begin / viscoil::GRAIN) + 1] = delta;
}

// Pieces of GRAIN, also where one thread has all of them: sums are the same for any number of threads.
template <void (*pass)(const ProjectTask&, int, int)>
inline void in_pieces(const void* task, int begin, int end) {
    for (int k = begin; k < end; k += viscoil::GRAIN)
        pass(*static_cast<const ProjectTask*>(task), k, k + viscoil::GRAIN < end ? k + viscoil::GRAIN : end);
}

void residual_pass(const void* task, int begin, int end) {
    static_cast<const ProjectTask*>(task)->even ? in_pieces<residuals<true>>(task, begin, end)
                                                : in_pieces<residuals<false>>(task, begin, end);
}

void image_pass(const void* task, int begin, int end) {
    static_cast<const ProjectTask*>(task)->even ? in_pieces<images<true>>(task, begin, end)
                                                : in_pieces<images<false>>(task, begin, end);
}

// d ← z + β d, u ← u + α d, r ← r − α A d, and the next z.
void advance_pass(const void* task, int begin, int end) {
    const ProjectTask& t = *static_cast<const ProjectTask*>(task);
    const __m128 alpha = _mm_set1_ps(t.alpha), beta = _mm_set1_ps(t.beta);
    for (int i = begin; i < end; i++) {
        const int64_t at = 3 * int64_t(i);
        if (t.inverse_mass[i] > 0) {
            const __m128 d = _mm_fmadd_ps(beta, read3(t.direction + at), read3(t.search + at));
            const __m128 image = _mm_fmadd_ps(beta, read3(t.direction_image + at), read3(t.image + at));
            const __m128 r = _mm_fnmadd_ps(alpha, image, read3(t.residual + at));
            const __m128 z = _mm_mul_ps(_mm_set1_ps(t.inverse_mass[i]), allowed(r, t.normal + at, t.held[i]));
            write3(t.u + at, _mm_fmadd_ps(alpha, d, read3(t.u + at)));
            write3(t.direction + at, d);
            write3(t.direction_image + at, image);
            write3(t.residual + at, r);
            write3(t.search + at, z);
            _mm_store_ps(t.before + 8 * int64_t(i) + 4, z);
        }
    }
}

}  // namespace
