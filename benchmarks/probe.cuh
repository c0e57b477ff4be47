// What the probes of passes over neighbours share: a jittered lattice in cells, the search, and how long a kernel takes.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define CHECK(call)                                                                            \
    do {                                                                                       \
        cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) printf("%s, line %d\n", cudaGetErrorString(error), __LINE__), exit(1); \
    } while (0)

constexpr int THREADS = 128;

struct Numbers {
    float h, weight, slope, reach2, per_support;
    int cells[3], slices[3];  // along each edge, per support
};

// Of a tank of ``edge`` spacings, its cells ``shape`` per support h.
inline Numbers numbers_of(int edge, float h, const int (&shape)[3]) {
    Numbers c{h, 15 / (3.14159f * powf(h, 6)), -45 / (3.14159f * powf(h, 6)), h * h, 1 / h};
    for (int axis = 0; axis < 3; axis++) c.slices[axis] = shape[axis], c.cells[axis] = (int)(edge / h * shape[axis]) + 2;
    return c;
}

// Particles of a shaken lattice; in a cell nobody has an order.
inline std::vector<float4> lattice(int edge) {
    auto shaken = [] { return 0.4f * (rand() / (float)RAND_MAX - 0.5f); };
    std::vector<float4> x;
    int n = edge * edge * edge;
    for (int i = 0; i < n; i++)
        x.push_back({i % edge + .5f + shaken(), i / edge % edge + .5f + shaken(), i / edge / edge + .5f + shaken(), 0});
    for (int i = n - 1; i > 0; i--) std::swap(x[i], x[((long)rand() * 32768 + rand()) % (i + 1)]);
    return x;
}

// Sorts particles by cell; first place of every cell.
inline std::vector<int> sorted_into_cells(std::vector<float4>& x, const Numbers& c) {
    auto cell = [&](const float4& p) {
        int cx = p.x * c.slices[0] / c.h, cy = p.y * c.slices[1] / c.h, cz = p.z * c.slices[2] / c.h;
        return ((size_t)cz * c.cells[1] + cy) * c.cells[0] + cx;
    };
    std::sort(x.begin(), x.end(), [&](const float4& a, const float4& b) { return cell(a) < cell(b); });
    std::vector<int> start((size_t)c.cells[0] * c.cells[1] * c.cells[2] + 1);
    for (auto& p : x) start[cell(p) + 1]++;
    for (size_t k = 1; k < start.size(); k++) start[k] += start[k - 1];
    return start;
}

template <class T>
T* sent(const std::vector<T>& values) {
    T* there;
    size_t bytes = values.size() * sizeof(T);
    CHECK(cudaMalloc(&there, bytes));
    CHECK(cudaMemcpy(there, values.data(), bytes, cudaMemcpyHostToDevice));
    return there;
}

__device__ __forceinline__ void add_pair(float x, float y, float z, const Numbers& c, float& density, float3& slopes, float& squares) {
    float r2 = x * x + y * y + z * z, inverse = rsqrtf(fmaxf(r2, 1e-20f)), m = fmaxf(c.h - r2 * inverse, 0.f);
    float g = m * m * c.slope * inverse;
    density += m * m * m * c.weight;
    slopes.x += g * x, slopes.y += g * y, slopes.z += g * z;
    squares += g * g * r2;
}

__device__ __forceinline__ float multiplier(float density, float3 s, float squares) {
    return -(density - 1.f) / (squares + s.x * s.x + s.y * s.y + s.z * s.z + 1.f);
}

// How far a coordinate is at least from the cells ``side`` cells away from its own, and the coordinate in cells.
__device__ __forceinline__ float gap(float at, int side, float per_cell) {
    float inside = at - floorf(at), cells = side == 0 ? 0.f : side < 0 ? inside - side - 1 : side - inside;
    return cells / per_cell;
}

// Calls take(j) for every neighbour j of particle i, at x[i] = a, in the order of cells.
template <class Take>
__device__ __forceinline__ void search(int i, float4 a, const float4* __restrict__ x, const int* __restrict__ start, const Numbers& c,
                                       Take take) {
    float px = c.slices[0] * c.per_support, py = c.slices[1] * c.per_support, pz = c.slices[2] * c.per_support;
    int cy = a.y * py, cz = a.z * pz;
    for (int dz = -c.slices[2]; dz <= c.slices[2]; dz++)
        for (int dy = -c.slices[1]; dy <= c.slices[1]; dy++) {
            int y = cy + dy, z = cz + dz;
            float gy = gap(a.y * py, dy, py), gz = gap(a.z * pz, dz, pz), left = c.reach2 - gy * gy - gz * gz;
            if (y < 0 || y >= c.cells[1] || z < 0 || z >= c.cells[2] || left <= 0) continue;
            int line = (z * c.cells[1] + y) * c.cells[0];
            float far = sqrtf(left) + 1e-4f;
            int first = start[line + max((int)((a.x - far) * px), 0)], last = start[line + min((int)((a.x + far) * px) + 1, c.cells[0])];
            if (a.x < far) first = start[line];
            for (int k = first; k < last; k += 4) {
                float4 b[4];
#pragma unroll
                for (int l = 0; l < 4; l++) b[l] = x[min(k + l, last - 1)];
#pragma unroll
                for (int l = 0; l < 4; l++) {
                    float dx = a.x - b[l].x, ey = a.y - b[l].y, ez = a.z - b[l].z;
                    if (dx * dx + ey * ey + ez * ez < c.reach2 && k + l != i && k + l < last) take(k + l);
                }
            }
        }
}

// Median of 20, or one with ONCE set, for profilers.
inline float microseconds(std::function<void()> launch) {
    std::vector<float> taken;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (int round = 0; round < (getenv("ONCE") ? 3 : 22); round++) {
        cudaEventRecord(begin), launch(), cudaEventRecord(end);
        CHECK(cudaEventSynchronize(end));
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        if (round > 1) taken.push_back(1e3f * ms);
    }
    CHECK(cudaGetLastError());
    std::sort(taken.begin(), taken.end());
    return taken[taken.size() / 2];
}
