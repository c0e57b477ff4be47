// What each pass is given. Mirrored field by field in tasks.py; pointers lead to the arrays of the kernels themselves.
#pragma once
#include <cmath>
#include <cstdint>

namespace viscoil {

constexpr int GRAIN = 256;  // particles handed out at once: some 10 µs of work
constexpr int FORMAT = 7;  // changes with any of these structures, and with what passes do with them

// ``value``, or NaN if ``witness``, which it was made from, is not finite: as sph/finite.py has it.
inline float unless_lost(float value, float witness) { return std::isfinite(witness) ? value : NAN; }

// Neighbours of particle i are index[i * row + k], k < count[i].
struct Near {
    const int32_t* count;
    const int32_t* index;
    int64_t row;
};

struct ListTask {
    const int32_t *order, *cell, *start;
    const float *x, *y, *z;  // by place
    const float* inverse_mass;
    int32_t *count, *index, *needed;
    int64_t row;
    int32_t width, dims[3];
    float reach2;
};

// Vectors are given as they are, (n, 3), and brought into (x, y, z, w), 16 bytes each: one load instead of three, and never
// across two cache lines. Who gets a task has room for that.
struct PackTask {
    const float* vector;
    float* out;
};

struct DensityTask {
    Near near;
    float *x, *clear;  // places, and how far from all solids they are at least: moved and shortened
    const float *volume, *inverse_mass, *wall, *wall_gradient;
    const int32_t* id;
    float *error, *multiplier;  // error: max(C, 0), or null
    float *places, *with_multipliers;  // (n, 4): x, and x with λ behind it
    float support, softness, repulsion, reference;
    int32_t unilateral, kernel, power, walled;
    // constraints/acceleration.py: where ``done`` ≥ 0, momentum is gathered in this iteration, with μ_k and ω_k/κ_max.
    float* pressure;  // (n, 2)
    float share, warm, square, momentum, gain;
    int32_t done;
};

struct XsphTask {
    Near near;
    const float *x, *v, *volume, *inverse_mass;
    float *velocity, *position;  // (n, 3), what the step leaves
    float *places, *motions;     // (n, 4): x and v
    float strength, support;
};

// One round of the velocity projection by conjugate gradients (constraints/velocity_projection.py): A u = b.
struct ProjectTask {
    Near near;
    const float *x, *free, *normal, *viscosity, *inverse_mass, *volume, *bulk;  // bulk: b of each material
    const int32_t *held, *material;
    float *u, *residual, *search, *image, *direction, *direction_image;
    float *scalars;
    int32_t* progress;
    float *before, *after;  // (n, 8): x, ν, velocities, q. A pass reads one and writes the other
    double* partial;        // (pieces, 2)
    float dt, support, pairs, tolerance;
    int32_t iterations, rounds, even;
    float alpha, beta;  // of the iteration that goes on
};

struct PressureTask {
    Near near;  // fluid only
    const float *x, *volume, *inverse_mass, *wall, *toward, *flux, *before;
    float *velocity;  // (n, 3)
    float *density, *gradient, *diagonal, *source, *pressure, *change, *acceleration, *excess;
    float *slope_x, *slope_y, *slope_z;  // as the list, where they are kept
    float *places, *motions;  // (n, 4): x with something behind it, and velocities or accelerations
    float support, dt, relaxation, warm, brake, momentum;
    int32_t enclosed, advected, keeping;
};

typedef void (*Pass)(const void* task, int begin, int end);

// The passes of one instruction set.
struct Passes {
    const char* name;
    Pass list, pack, multipliers, corrections, xsph;
    Pass lay_out, pressures, residuals, images, advance;  // of the velocity projection
    Pass weigh, source, behind, acceleration, relax;  // of pressures
};

extern const Passes passes_avx2, passes_avx512;

}  // namespace viscoil
