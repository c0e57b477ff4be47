// What Python calls: the best passes this processor can run, shared out among threads.
#include "pool.h"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

using namespace viscoil;

namespace {

const Passes* best() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return &passes_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &passes_avx2;
    return nullptr;
}

const Passes* chosen = best();

}  // namespace

// The instruction set in use, or null where the processor has none of them.
EXPORT const char* viscoil_passes() { return chosen ? chosen->name : nullptr; }

EXPORT int viscoil_format() { return FORMAT; }

// For tests: AVX2 also where there is more. 1 when it is in use now.
EXPORT int viscoil_restrict(int narrow) {
    chosen = best();
    if (chosen && narrow) chosen = &passes_avx2;
    return chosen == &passes_avx2;
}

EXPORT void viscoil_set_threads(int count) { set_threads(count); }
EXPORT void viscoil_list(const ListTask* task, int n) { share_out(chosen->list, task, n, GRAIN); }

static void pack(const float* vector, float* out, int n) {
    const PackTask task{vector, out};
    share_out(chosen->pack, &task, n, 16 * GRAIN);
}

EXPORT void viscoil_density(const DensityTask* task, int n) {
    pack(task->x, task->places, n);
    share_out(chosen->multipliers, task, n, GRAIN);
    share_out(chosen->corrections, task, n, GRAIN);
}

EXPORT void viscoil_xsph(const XsphTask* task, int n) {
    pack(task->x, task->places, n);
    pack(task->v, task->motions, n);
    share_out(chosen->xsph, task, n, GRAIN);
}

// γ and δ of all pieces, in their order.
static void add_up(const ProjectTask& t, int n, float& gamma, float& delta) {
    double sum[2] = {0, 0};
    for (int k = 0; k < (n + GRAIN - 1) / GRAIN; k++)
        for (int a = 0; a < 2; a++) sum[a] += t.partial[2 * k + a];
    gamma = float(sum[0]);
    delta = float(sum[1]);
}

// One round, as begin_round, steer and strides of the kernels have it.
EXPORT void viscoil_project(ProjectTask* task, int n) {
    ProjectTask& t = *task;
    float gamma, delta;
    share_out(chosen->lay_out, task, n, GRAIN);
    share_out(chosen->pressures, task, n, GRAIN);
    share_out(chosen->residuals, task, n, GRAIN);
    add_up(t, n, gamma, delta);
    if (t.progress[2] == 0) {
        t.scalars[3] = gamma;
        t.progress[0] = 0;
    }
    t.progress[2]++;
    const float enough = t.tolerance * t.tolerance * t.scalars[3];
    const int budget = (t.iterations * t.progress[2] + t.rounds - 1) / t.rounds - t.progress[0];
    float before = gamma;
    t.alpha = t.beta = 0;
    for (int left = !std::isfinite(gamma) ? 1 : gamma > enough ? budget : 0; left > 0; left--) {
        share_out(chosen->pressures, task, n, GRAIN);
        share_out(chosen->images, task, n, GRAIN);
        add_up(t, n, gamma, delta);
        float curvature = delta;
        t.beta = 0;
        if (t.alpha > 0) {
            t.beta = gamma / (before > 1e-30f ? before : 1e-30f);
            curvature = delta - t.beta * gamma / t.alpha;
        }
        t.alpha = curvature > 1e-6f * delta ? gamma / (curvature > 1e-30f ? curvature : 1e-30f) : 0;
        t.alpha = viscoil::unless_lost(t.alpha, gamma + delta);
        before = gamma;
        t.progress[0]++;
        t.progress[1]++;
        share_out(chosen->advance, task, n, GRAIN);
        if (gamma <= enough || !(t.alpha > 0)) break;
    }
    t.scalars[0] = gamma;
    t.scalars[1] = t.alpha;
    t.scalars[2] = t.beta;
}

EXPORT void viscoil_weigh(const PressureTask* task, int n) {
    pack(task->x, task->places, n);
    share_out(chosen->weigh, task, n, GRAIN);
}

EXPORT void viscoil_sources(const PressureTask* task, int n) {
    pack(task->x, task->places, n);
    if (task->advected) pack(task->velocity, task->motions, n);
    share_out(chosen->source, task, n, GRAIN);
    share_out(chosen->behind, task, n, 16 * GRAIN);
}

EXPORT void viscoil_accelerate(const PressureTask* task, int n) { share_out(chosen->acceleration, task, n, GRAIN); }

EXPORT void viscoil_iterate(const PressureTask* task, int n) {
    share_out(chosen->acceleration, task, n, GRAIN);
    share_out(chosen->relax, task, n, GRAIN);
    share_out(chosen->behind, task, n, 16 * GRAIN);
}
