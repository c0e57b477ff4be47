// A yardstick for the kernels of viscoil: the same loops, written plainly in C++ with OpenMP.
//
//   g++ -O3 -march=native -ffast-math -fopenmp yardstick.cpp -o yardstick
//   yardstick INPUT THREADS
//
// INPUT holds, as 32-bit numbers: particles and row length of the list (int), support h, softness eps, repulsion k,
// reference 1/W(dq), then x y z of every particle, then its volume, then its inverse mass (all float). Commands come line by line on standard input
// and each is answered by one line of numbers on standard output:
//
//   list       counting sort into cells, then the neighbour list     -> seconds of the sort, seconds of the list
//   iterate    one pass for the multipliers, one for the corrections -> seconds of the first, seconds of the second
//   dump FILE  writes neighbours, multipliers, corrections (n int, n float, 3n float, in the order of INPUT)
//   quit
//
// The formulas are those of viscoil/constraints/density.py with the Spiky kernel, without walls, periods, the treatment of
// coincident particles and what that file adds for fluids of different density. Volumes and inverse masses of neighbours
// are only read where they differ, as there.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <omp.h>

struct Numbers {
    float support, softness, repulsion, reference;
};

struct Fluid {
    int n = 0;
    Numbers c{};
    std::vector<float> x, volume, inverse_mass;  // as given; x is (n, 3)
    bool uniform = false;                        // one volume and one inverse mass for all
    // By cell:
    int dims[3] = {1, 1, 1};
    std::vector<int> cell, order, start, sorted_cell;
    std::vector<float> y, v, w;  // x, volume and inverse mass in cell order
    std::vector<int> histogram;  // particles of a cell, for each thread
    // Neighbours and results, in cell order:
    int width = 0;
    std::vector<int> count, index;
    std::vector<float> multiplier, correction;
};

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static bool read(const char* path, Fluid& f) {
    FILE* file = std::fopen(path, "rb");
    if (!file) return false;
    int32_t size[2] = {0, 0};
    bool good = std::fread(size, 4, 2, file) == 2 && std::fread(&f.c, sizeof f.c, 1, file) == 1;
    good = good && size[0] > 0 && size[1] > 0;
    if (good) {
        const int n = f.n = size[0];
        f.width = size[1];
        f.x.resize(3 * size_t(n));
        f.volume.resize(n);
        f.inverse_mass.resize(n);
        good = std::fread(f.x.data(), 4, f.x.size(), file) == f.x.size() &&
               std::fread(f.volume.data(), 4, n, file) == size_t(n) &&
               std::fread(f.inverse_mass.data(), 4, n, file) == size_t(n);
        f.uniform = true;
        for (int i = 1; i < n; i++)
            f.uniform = f.uniform && f.volume[i] == f.volume[0] && f.inverse_mass[i] == f.inverse_mass[0];
    }
    std::fclose(file);
    return good;
}

// Stable counting sort: every thread counts its own stretch of particles, so no atomics are needed.
static void sort(Fluid& f) {
    const int n = f.n, threads = omp_get_max_threads();
    float low[3], high[3];
    for (int a = 0; a < 3; a++) {
        float least = f.x[a], most = f.x[a];
#pragma omp parallel for schedule(static) reduction(min : least) reduction(max : most)
        for (int i = 0; i < n; i++) {
            least = std::min(least, f.x[3 * i + a]);
            most = std::max(most, f.x[3 * i + a]);
        }
        low[a] = least;
        high[a] = most;
    }
    for (int a = 0; a < 3; a++) f.dims[a] = int((high[a] - low[a]) / f.c.support) + 1;
    const int cells = f.dims[0] * f.dims[1] * f.dims[2];
    f.start.resize(cells + 1);
    f.histogram.assign(size_t(threads) * cells, 0);
    const float inverse = 1.0f / f.c.support;
#pragma omp parallel
    {
        int* mine = &f.histogram[size_t(omp_get_thread_num()) * cells];
#pragma omp for schedule(static)
        for (int i = 0; i < n; i++) {
            const int cx = std::min(int((f.x[3 * i] - low[0]) * inverse), f.dims[0] - 1);
            const int cy = std::min(int((f.x[3 * i + 1] - low[1]) * inverse), f.dims[1] - 1);
            const int cz = std::min(int((f.x[3 * i + 2] - low[2]) * inverse), f.dims[2] - 1);
            f.cell[i] = (cz * f.dims[1] + cy) * f.dims[0] + cx;
            mine[f.cell[i]]++;
        }
    }
    int running = 0;
    for (int c = 0; c < cells; c++) {
        f.start[c] = running;
        for (int t = 0; t < threads; t++) {
            const int here = f.histogram[size_t(t) * cells + c];
            f.histogram[size_t(t) * cells + c] = running;
            running += here;
        }
    }
    f.start[cells] = n;
#pragma omp parallel
    {
        int* mine = &f.histogram[size_t(omp_get_thread_num()) * cells];
#pragma omp for schedule(static)
        for (int i = 0; i < n; i++) {
            const int place = mine[f.cell[i]]++;
            f.order[place] = i;
            f.sorted_cell[place] = f.cell[i];
            for (int a = 0; a < 3; a++) f.y[3 * place + a] = f.x[3 * i + a];
            f.v[place] = f.volume[i];
            f.w[place] = f.inverse_mass[i];
        }
    }
}

// Everybody closer than h; three cells along x are one run. Returns the most neighbours anybody has.
static int list(Fluid& f) {
    const int n = f.n, dx = f.dims[0], dy = f.dims[1], dz = f.dims[2], width = f.width;
    const float h2 = f.c.support * f.c.support;
    const float* y = f.y.data();
    int most = 0;
#pragma omp parallel for schedule(static) reduction(max : most)
    for (int i = 0; i < n; i++) {
        const int c = f.sorted_cell[i], cx = c % dx, cy = c / dx % dy, cz = c / (dx * dy);
        const float xi = y[3 * i], yi = y[3 * i + 1], zi = y[3 * i + 2];
        int* out = &f.index[size_t(i) * width];
        int found = 0;
        for (int az = std::max(cz - 1, 0); az <= std::min(cz + 1, dz - 1); az++)
            for (int ay = std::max(cy - 1, 0); ay <= std::min(cy + 1, dy - 1); ay++) {
                const int line = (az * dy + ay) * dx;
                const int first = f.start[line + std::max(cx - 1, 0)], last = f.start[line + std::min(cx + 2, dx)];
                for (int k = first; k < last; k++) {
                    const float ex = xi - y[3 * k], ey = yi - y[3 * k + 1], ez = zi - y[3 * k + 2];
                    if (ex * ex + ey * ey + ez * ez < h2 && k != i) {
                        if (found < width) out[found] = k;
                        found++;
                    }
                }
            }
        f.count[i] = std::min(found, width);
        most = std::max(most, found);
    }
    return most;
}

// lambda_i = -C_i / (sum_k w_k |grad_k C_i|^2 + eps)
template <bool uniform>
static void multipliers(Fluid& f) {
    const float h = f.c.support, h2 = h * h, pi = 3.14159265358979f;
    const float weight = 15.0f / (pi * h * h * h), slope = -45.0f / (pi * h * h * h * h * h), inverse = 1.0f / h;
    const float *x = f.y.data(), *v = f.v.data(), *w = f.w.data();
#pragma omp parallel for schedule(static)
    for (int i = 0; i < f.n; i++) {
        const float xi = x[3 * i], yi = x[3 * i + 1], zi = x[3 * i + 2];
        const int* near = &f.index[size_t(i) * f.width];
        const float vi = v[i], wi = w[i];
        float density = vi * weight, ox = 0, oy = 0, oz = 0, squares = 0;
        for (int k = 0; k < f.count[i]; k++) {
            const int j = near[k];
            const float dx = xi - x[3 * j], dy = yi - x[3 * j + 1], dz = zi - x[3 * j + 2];
            const float r2 = dx * dx + dy * dy + dz * dz;
            if (r2 < h2) {
                const float q = std::max(std::sqrt(r2) * inverse, 1e-6f), s = 1.0f - q;
                const float vj = uniform ? vi : v[j], wj = uniform ? wi : w[j];
                density += vj * weight * s * s * s;
                const float g = vj * slope * s * s / q;
                ox += g * dx;
                oy += g * dy;
                oz += g * dz;
                squares += wj * g * g * r2;
            }
        }
        const float own = ox * ox + oy * oy + oz * oz;
        f.multiplier[i] = -(density - 1.0f) / (squares + wi * own + f.c.softness);
    }
}

// dx_i = w_i sum_j (lambda_i V_j + lambda_j V_i + s_ij V_j) grad W_ij,  s_ij = -k (W(x_ij) / W(dq))^4
template <bool uniform>
static void corrections(Fluid& f) {
    const float h = f.c.support, h2 = h * h, pi = 3.14159265358979f;
    const float slope = -45.0f / (pi * h * h * h * h * h), inverse = 1.0f / h;
    const float ratio = 315.0f / (64.0f * pi * h * h * h) * f.c.reference, repulsion = f.c.repulsion;
    const float *x = f.y.data(), *v = f.v.data(), *w = f.w.data(), *lambda = f.multiplier.data();
#pragma omp parallel for schedule(static)
    for (int i = 0; i < f.n; i++) {
        const float xi = x[3 * i], yi = x[3 * i + 1], zi = x[3 * i + 2], own = lambda[i], vi = v[i];
        const int* near = &f.index[size_t(i) * f.width];
        float tx = 0, ty = 0, tz = 0;
        for (int k = 0; k < f.count[i]; k++) {
            const int j = near[k];
            const float dx = xi - x[3 * j], dy = yi - x[3 * j + 1], dz = zi - x[3 * j + 2];
            const float r2 = dx * dx + dy * dy + dz * dz;
            if (r2 < h2) {
                const float q = std::max(std::sqrt(r2) * inverse, 1e-6f), s = 1.0f - q;
                const float m = 1.0f - r2 * inverse * inverse, p = ratio * m * m * m;
                const float vj = uniform ? vi : v[j];
                const float a = own * vj + lambda[j] * vi - repulsion * p * p * p * p * vj;
                const float g = a * slope * s * s / q;
                tx += g * dx;
                ty += g * dy;
                tz += g * dz;
            }
        }
        f.correction[3 * i] = w[i] * tx;
        f.correction[3 * i + 1] = w[i] * ty;
        f.correction[3 * i + 2] = w[i] * tz;
    }
}

static bool dump(const Fluid& f, const char* path) {
    std::vector<int32_t> count(f.n);
    std::vector<float> multiplier(f.n), correction(3 * size_t(f.n));
    for (int i = 0; i < f.n; i++) {
        const int o = f.order[i];
        count[o] = f.count[i];
        multiplier[o] = f.multiplier[i];
        for (int a = 0; a < 3; a++) correction[3 * size_t(o) + a] = f.correction[3 * size_t(i) + a];
    }
    FILE* file = std::fopen(path, "wb");
    if (!file) return false;
    bool good = std::fwrite(count.data(), 4, f.n, file) == size_t(f.n) &&
                std::fwrite(multiplier.data(), 4, f.n, file) == size_t(f.n) &&
                std::fwrite(correction.data(), 4, correction.size(), file) == correction.size();
    return std::fclose(file) == 0 && good;
}

int main(int arguments, char** argument) {
    Fluid f;
    if (arguments != 3 || std::atoi(argument[2]) < 1 || !read(argument[1], f)) {
        std::fprintf(stderr, "usage: yardstick INPUT THREADS\n");
        return 2;
    }
    omp_set_num_threads(std::atoi(argument[2]));
    f.cell.resize(f.n);
    f.order.resize(f.n);
    f.sorted_cell.resize(f.n);
    f.y.resize(3 * size_t(f.n));
    f.v.resize(f.n);
    f.w.resize(f.n);
    f.count.resize(f.n);
    f.index.resize(size_t(f.n) * f.width);
    f.multiplier.resize(f.n);
    f.correction.resize(3 * size_t(f.n));
    char line[4096];
    while (std::fgets(line, sizeof line, stdin)) {
        const std::string command(line, std::strcspn(line, "\r\n"));
        if (command == "quit") break;
        const double begin = now();
        if (command == "list") {
            sort(f);
            const double between = now();
            int most = list(f);
            if (most > f.width) {  // longer rows for the next time; this one does not count
                f.width = most + (most % 16 == 0 ? 4 : 0);
                f.index.resize(size_t(f.n) * f.width);
                list(f);
            }
            std::printf("%.9f %.9f\n", between - begin, now() - between);
        } else if (command == "iterate") {
            f.uniform ? multipliers<true>(f) : multipliers<false>(f);
            const double between = now();
            f.uniform ? corrections<true>(f) : corrections<false>(f);
            std::printf("%.9f %.9f\n", between - begin, now() - between);
        } else if (command.rfind("dump ", 0) == 0) {
            if (!dump(f, command.c_str() + 5)) return 1;
            std::printf("0 0\n");
        } else {
            std::fprintf(stderr, "unknown command: %s\n", command.c_str());
            return 2;
        }
        std::fflush(stdout);
    }
    return 0;
}
