// Pressures of implicit incompressible SPH, as in constraints/pressure.py, where all fluid particles share one volume and mass.
// Slopes V ∇W are worked out again in every pass: reading what was kept of them takes longer, once they do not fit into the
// cache. Where they do, densities keep them, and the kernels' iterations are as fast as any here.
#pragma once
#include "density.h"

namespace {

// ∇W_ij = g x_ij of the cubic spline, times πh⁵/48; W times πh³/16.
struct Spline {
    Wide x, y, z, inverse_h, smallest;

    template <bool tail>
    inline void at(Wide dx, Wide dy, Wide dz, Mask valid, Wide& r2, Wide& s, Wide& t, Wide& g) const {
        r2 = dot(dx, dy, dz);
        const Wide inverse = inverse_root(largest(r2, smallest));
        const Wide q = r2 * inverse * inverse_h;
        s = largest(all(1) - q, all(0));
        t = largest(all(0.5f) - q, all(0));
        if (tail) {
            s = keep(valid, s);
            t = keep(valid, t);
        }
        g = fnma(s, s, all(4) * t * t) * inverse;  // times h
    }
};

inline Spline spline_at(const float* x, float h) {
    return {all(x[0]), all(x[1]), all(x[2]), all(1 / h), all(1e-12f * h * h)};
}

inline float slope_of(float h) { return 48.0f / PI / (h * h * h * h); }  // one h is in 1/q already

template <bool keeping>
struct Weighing {
    const float* places;
    Spline k;
    Wide factor;
    float *slope_x, *slope_y, *slope_z;
    Wide weights = all(0), gx = all(0), gy = all(0), gz = all(0), squares = all(0);

    template <bool tail, bool half>
    inline void add(const Places& j, Mask valid) {
        Wide a, b, c, unused, r2, s, t, g;
        fetch<half>(places, j, a, b, c, unused);
        const Wide dx = k.x - a, dy = k.y - b, dz = k.z - c;
        k.at<tail>(dx, dy, dz, valid, r2, s, t, g);
        weights = weights + fnma(all(4) * t * t, t, s * s * s);
        gx = fma(g, dx, gx);
        gy = fma(g, dy, gy);
        gz = fma(g, dz, gz);
        squares = fma(g, g * r2, squares);
        if (keeping) {
            const Mask there = tail ? valid : first(LANES);
            g = g * factor;
            write(slope_x, g * dx, there);
            write(slope_y, g * dy, there);
            write(slope_z, g * dz, there);
            slope_x += LANES;
            slope_y += LANES;
            slope_z += LANES;
        }
    }
};

// δ, G, the diagonal, and Akinci's friction.
template <bool keeping>
void weigh_all(const viscoil::PressureTask& t, int begin, int end) {
    const float h = t.support, slope = slope_of(h), weight = 16.0f / PI / (h * h * h);
    for (int64_t i = begin; i < end; i++) {
        const float mobility = t.inverse_mass[i];  // negative: led by a nozzle
        if (mobility == 0) continue;
        const float *x = t.places + 4 * i, volume = t.volume[i], factor = volume * slope;
        const int64_t row = i * t.near.row;
        Weighing<keeping> w{t.places, spline_at(x, h), all(factor), t.slope_x + row, t.slope_y + row, t.slope_z + row};
        each<16>(t.near, int(i), w);
        alignas(16) float sum[4], square[4];
        _mm_store_ps(sum, sums(w.gx, w.gy, w.gz, w.weights));
        _mm_store_ps(square, sums(w.squares, w.squares, w.squares, w.squares));
        float density = volume * weight * (0.5f + sum[3]), gradient[3];
        for (int a = 0; a < 3; a++) gradient[a] = factor * sum[a];
        if (t.enclosed) {
            density += t.wall[i];
            for (int a = 0; a < 3; a++) gradient[a] += t.toward[3 * i + a];
            if (mobility > 0)
                for (int a = 0; a < 3; a++) t.velocity[3 * i + a] += t.brake / density * t.acceleration[3 * i + a];
        }
        float length = 0;
        for (int a = 0; a < 3; a++) {
            t.gradient[3 * i + a] = gradient[a];
            length += gradient[a] * gradient[a];
        }
        t.density[i] = density;
        t.diagonal[i] = mobility > 0 ? mobility * (length + factor * factor * square[0]) : 0;
    }
}

void weigh_pass(const void* task, int begin, int end) {
    const viscoil::PressureTask& t = *static_cast<const viscoil::PressureTask*>(task);
    t.keeping ? weigh_all<true>(t, begin, end) : weigh_all<false>(t, begin, end);
}

// Σ_j u_j·∇W_ij of a field u.
struct Gathering {
    const float *places, *field;
    Spline k;
    Wide total = all(0);

    template <bool tail, bool half>
    inline void add(const Places& j, Mask valid) {
        Wide a, b, c, unused, r2, s, t, g;
        fetch<half>(places, j, a, b, c, unused);
        const Wide dx = k.x - a, dy = k.y - b, dz = k.z - c;
        k.at<tail>(dx, dy, dz, valid, r2, s, t, g);
        fetch<half>(field, j, a, b, c, unused);
        total = fma(g, fma(dz, c, fma(dy, b, dx * a)), total);
    }
};

// u_i·G_i − Σ_j V_j u_j·∇W_ij: how a field makes the density of particle i grow.
inline float gathering(const viscoil::PressureTask& t, int64_t i) {
    const float *x = t.places + 4 * i, *u = t.motions + 4 * i, *gradient = t.gradient + 3 * i;
    Gathering s{t.places, t.motions, spline_at(x, t.support)};
    each<16>(t.near, int(i), s);
    const float sum = _mm_cvtss_f32(sums(s.total, s.total, s.total, s.total));
    return u[0] * gradient[0] + u[1] * gradient[1] + u[2] * gradient[2] - t.volume[i] * slope_of(t.support) * sum;
}

// δ̃ − 1 and the pressures to start from, which go behind the places.
void source_pass(const void* task, int begin, int end) {
    const viscoil::PressureTask& t = *static_cast<const viscoil::PressureTask*>(task);
    for (int64_t i = begin; i < end; i++) {
        float pressure = 0;
        if (t.inverse_mass[i] != 0) {
            float source = t.density[i] - 1;
            if (t.advected) source += t.dt * (gathering(t, i) - (t.enclosed ? t.flux[i] : 0));
            t.source[i] = source;
            pressure = t.warm * t.before[i] / (t.density[i] * t.density[i]);
        }
        t.pressure[i] = pressure;
    }
}

// Pressures behind the places.
void behind_pass(const void* task, int begin, int end) {
    const viscoil::PressureTask& t = *static_cast<const viscoil::PressureTask*>(task);
    for (int64_t i = begin; i < end; i++) t.places[4 * i + 3] = t.pressure[i];
}

struct Pushing {
    const float* places;
    Spline k;
    Wide tx = all(0), ty = all(0), tz = all(0);

    template <bool tail, bool half>
    inline void add(const Places& j, Mask valid) {
        Wide a, b, c, pressure, r2, s, t, g;
        fetch<half>(places, j, a, b, c, pressure);
        const Wide dx = k.x - a, dy = k.y - b, dz = k.z - c;
        k.at<tail>(dx, dy, dz, valid, r2, s, t, g);
        g = g * pressure;
        tx = fma(g, dx, tx);
        ty = fma(g, dy, ty);
        tz = fma(g, dz, tz);
    }
};

// a_i of the pressures as they are, also for the step's end.
void acceleration_pass(const void* task, int begin, int end) {
    const viscoil::PressureTask& t = *static_cast<const viscoil::PressureTask*>(task);
    const float slope = slope_of(t.support);
    for (int64_t i = begin; i < end; i++) {
        __m128 a = _mm_setzero_ps();
        if (t.inverse_mass[i] > 0) {
            const float* x = t.places + 4 * i;
            Pushing p{t.places, spline_at(x, t.support)};
            each<16>(t.near, int(i), p);
            const __m128 own = _mm_mul_ps(_mm_set1_ps(x[3]), read3(t.gradient + 3 * i));
            const __m128 sum = _mm_fmadd_ps(_mm_set1_ps(t.volume[i] * slope), sums(p.tx, p.ty, p.tz, all(0)), own);
            a = _mm_mul_ps(_mm_set1_ps(-t.inverse_mass[i]), sum);
        }
        _mm_store_ps(t.motions + 4 * i, a);
        write3(t.acceleration + 3 * i, a);
    }
}

// One step of the relaxed Jacobi iteration, and the compression there was before it.
void relax_pass(const void* task, int begin, int end) {
    const viscoil::PressureTask& t = *static_cast<const viscoil::PressureTask*>(task);
    const float dt2 = t.dt * t.dt, h2 = t.support * t.support;
    for (int64_t i = begin; i < end; i++) {
        float excess = 0, pressure = 0;
        if (t.inverse_mass[i] != 0) {
            excess = t.source[i] + dt2 * gathering(t, i);
            const float diagonal = t.diagonal[i], stiffness = dt2 * (diagonal > 1e-30f ? diagonal : 1e-30f);
            const float on = t.momentum != 0 ? t.momentum * t.change[i] : 0;
            pressure = diagonal * h2 > 1e-6f ? t.pressure[i] + on + t.relaxation * excess / stiffness : 0;  // alone, or led
            pressure = viscoil::unless_lost(pressure > 0 ? pressure : 0, excess + diagonal);
            t.change[i] = pressure - t.pressure[i];
        }
        t.pressure[i] = pressure;
        t.excess[i] = excess > 0 ? excess : 0;
    }
}

}  // namespace
