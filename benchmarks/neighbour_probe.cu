// What plain CUDA C++ makes of our passes over neighbours, and what their time depends on: bytes fetched per neighbour, registers,
// scattered stores, conflicts of the cache's banks (bank_rounds.py). A jittered lattice, particles in the order of cells, lists in
// columns, as in src/viscoil/sph.
//
//     nvcc -O3 -use_fast_math -arch=sm_90 -std=c++17 -o probe benchmarks/neighbour_probe.cu && ./probe 100 1.95 && ./probe 100 2.5
//
// Arguments: particles along an edge, support in spacings. Prints microseconds, medians of 20.
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

constexpr int WIDTH = 92;    // entries of a list
constexpr int THREADS = 128;
constexpr int WIDTH_OF_PAIRS = 124, PAIRS = 64;  // entries of a list for two particles, threads of a block that makes those

struct Numbers {
    float h, weight, slope, reach2, per_cell;
    int cells;  // along an edge
};

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

// The multipliers of PBF, a neighbour's place in 16 bytes.
__global__ void multipliers(int n, const float4* __restrict__ x, const int* __restrict__ list, const int* __restrict__ count,
                            Numbers c, float* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 a = x[i];
    float density = 0, squares = 0;
    float3 slopes = make_float3(0, 0, 0);
    for (int k = 0; k < count[i]; k += 4) {
        float4 b[4];
#pragma unroll
        for (int l = 0; l < 4; l++) b[l] = x[list[(size_t)(k + l) * n + i]];
#pragma unroll
        for (int l = 0; l < 4; l++) add_pair(a.x - b[l].x, a.y - b[l].y, a.z - b[l].z, c, density, slopes, squares);
    }
    out[i] = multiplier(density, slopes, squares);
}

// The same with places of 8 bytes: three numbers of 21 bits, whose differences wrap around.
__device__ __forceinline__ int3 aligned(unsigned low, unsigned high) {
    return make_int3(low << 11, __funnelshift_l(low, high, 22), high << 1);
}

__global__ void multipliers_8_bytes(int n, const uint2* __restrict__ x, const int* __restrict__ list, const int* __restrict__ count,
                                    Numbers c, float unit, float* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int3 a = aligned(x[i].x, x[i].y);
    float density = 0, squares = 0;
    float3 slopes = make_float3(0, 0, 0);
    for (int k = 0; k < count[i]; k += 4) {
        uint2 b[4];
#pragma unroll
        for (int l = 0; l < 4; l++) b[l] = x[list[(size_t)(k + l) * n + i]];
#pragma unroll
        for (int l = 0; l < 4; l++) {
            int3 o = aligned(b[l].x, b[l].y);
            add_pair(unit * (a.x - o.x), unit * (a.y - o.y), unit * (a.z - o.z), c, density, slopes, squares);
        }
    }
    out[i] = multiplier(density, slopes, squares);
}

// Friction of DC-PBD: place and velocity as two records of 16 bytes, and as one.
__device__ __forceinline__ void rub(float x, float y, float z, float3 u, float3 w, const Numbers& c, float3& total) {
    float r2 = x * x + y * y + z * z, inverse = rsqrtf(fmaxf(r2, 1e-20f)), q = r2 * inverse * c.per_cell, s = 1.f - q;
    float g = q < 0.5f ? 3.f * q - 2.f : (q < 1.f ? -s * s * inverse : 0.f);
    g *= (x * (u.x - w.x) + y * (u.y - w.y) + z * (u.z - w.z)) * inverse * inverse;
    total.x += g * x, total.y += g * y, total.z += g * z;
}

__global__ void friction_32_bytes(int n, const float4* __restrict__ r, const int* __restrict__ list, const int* __restrict__ count,
                                  Numbers c, float4* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 a = r[2 * i], u = r[2 * i + 1];
    float3 total = make_float3(0, 0, 0);
    for (int k = 0; k < count[i]; k += 4) {
        float4 b[4], w[4];
#pragma unroll
        for (int l = 0; l < 4; l++) {
            int j = list[(size_t)(k + l) * n + i];
            b[l] = r[2 * j], w[l] = r[2 * j + 1];
        }
#pragma unroll
        for (int l = 0; l < 4; l++)
            rub(a.x - b[l].x, a.y - b[l].y, a.z - b[l].z, make_float3(u.x, u.y, u.z), make_float3(w[l].x, w[l].y, w[l].z), c, total);
    }
    out[i] = make_float4(total.x, total.y, total.z, 0);
}

__device__ __forceinline__ float3 velocity(unsigned low, unsigned high) {
    float scale = __uint_as_float((high >> 24) << 23);
    int x = ((int)(low << 14)) >> 14, y = ((int)__funnelshift_l(low, high, 28)) >> 14, z = ((int)(high << 8)) >> 12;
    return make_float3(x * scale, y * scale, z * scale);
}

__global__ void friction_16_bytes(int n, const uint4* __restrict__ r, const int* __restrict__ list, const int* __restrict__ count,
                                  Numbers c, float unit, float4* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 own = r[i];
    int3 a = aligned(own.x, own.y);
    float3 u = velocity(own.z, own.w), total = make_float3(0, 0, 0);
    for (int k = 0; k < count[i]; k += 4) {
        uint4 b[4];
#pragma unroll
        for (int l = 0; l < 4; l++) b[l] = r[list[(size_t)(k + l) * n + i]];
#pragma unroll
        for (int l = 0; l < 4; l++) {
            int3 o = aligned(b[l].x, b[l].y);
            rub(unit * (a.x - o.x), unit * (a.y - o.y), unit * (a.z - o.z), u, velocity(b[l].z, b[l].w), c, total);
        }
    }
    out[i] = make_float4(total.x, total.y, total.z, 0);
}

// Lists: every entry written when it is found, or collected by the block and written in lines. Filled up to fours with i.
template <bool collected>
__global__ void lists(int n, const float4* __restrict__ x, const int* __restrict__ start, Numbers c, int* __restrict__ list,
                      int* __restrict__ count) {
    extern __shared__ int basket[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    if (i >= n) return;
    float4 a = x[i];
    int cx = a.x * c.per_cell, cy = a.y * c.per_cell, cz = a.z * c.per_cell;
    for (int row = 0; row < 9; row++) {
        int y = cy + row % 3 - 1, z = cz + row / 3 - 1;
        if (y < 0 || y >= c.cells || z < 0 || z >= c.cells) continue;
        int line = (z * c.cells + y) * c.cells;
        int first = start[line + max(cx - 1, 0)], last = start[line + min(cx + 2, c.cells)];
        for (int k = first; k < last; k += 4) {
            float4 b[4];
#pragma unroll
            for (int l = 0; l < 4; l++) b[l] = x[min(k + l, last - 1)];
#pragma unroll
            for (int l = 0; l < 4; l++) {
                float dx = a.x - b[l].x, dy = a.y - b[l].y, dz = a.z - b[l].z;
                if (dx * dx + dy * dy + dz * dz < c.reach2 && k + l != i && k + l < last) {
                    int at = min(found++, WIDTH - 1);
                    if (collected)
                        basket[at * THREADS + threadIdx.x] = k + l;
                    else
                        list[(size_t)at * n + i] = k + l;
                }
            }
        }
    }
    found = min(found, WIDTH);
    if (collected)
        for (int k = 0; k < found; k++) list[(size_t)k * n + i] = basket[k * THREADS + threadIdx.x];
    for (int k = found; k < (found + 3) / 4 * 4; k++) list[(size_t)k * n + i] = i;
    count[i] = found;
}

// One list for two particles that follow each other in memory, of everybody close to one of them: what is fetched serves both, and
// who is too far from one of the two adds nothing to it.
__global__ void lists_of_pairs(int n, const float4* __restrict__ x, const int* __restrict__ start, Numbers c, int* __restrict__ list,
                               int* __restrict__ count) {
    extern __shared__ int basket[];
    int pair = blockIdx.x * blockDim.x + threadIdx.x, pairs = n / 2, i = 2 * pair, found = 0;
    if (pair >= pairs) return;
    float4 a = x[i], b = x[i + 1];
    int low[3] = {(int)(fminf(a.x, b.x) * c.per_cell), (int)(fminf(a.y, b.y) * c.per_cell), (int)(fminf(a.z, b.z) * c.per_cell)};
    int high[3] = {(int)(fmaxf(a.x, b.x) * c.per_cell), (int)(fmaxf(a.y, b.y) * c.per_cell), (int)(fmaxf(a.z, b.z) * c.per_cell)};
    for (int z = max(low[2] - 1, 0); z <= min(high[2] + 1, c.cells - 1); z++)
        for (int y = max(low[1] - 1, 0); y <= min(high[1] + 1, c.cells - 1); y++) {
            int line = (z * c.cells + y) * c.cells;
            int first = start[line + max(low[0] - 1, 0)], last = start[line + min(high[0] + 2, c.cells)];
            for (int k = first; k < last; k += 4) {
                float4 o[4];
#pragma unroll
                for (int l = 0; l < 4; l++) o[l] = x[min(k + l, last - 1)];
#pragma unroll
                for (int l = 0; l < 4; l++) {
                    float ax = a.x - o[l].x, ay = a.y - o[l].y, az = a.z - o[l].z;
                    float bx = b.x - o[l].x, by = b.y - o[l].y, bz = b.z - o[l].z;
                    float nearer = fminf(ax * ax + ay * ay + az * az, bx * bx + by * by + bz * bz);
                    if (nearer < c.reach2 && k + l < last) basket[min(found++, WIDTH_OF_PAIRS - 1) * PAIRS + threadIdx.x] = k + l;
                }
            }
        }
    found = min(found, WIDTH_OF_PAIRS);
    for (int k = 0; k < found; k++) list[(size_t)k * pairs + pair] = basket[k * PAIRS + threadIdx.x];
    for (int k = found; k < (found + 3) / 4 * 4; k++) list[(size_t)k * pairs + pair] = n;  // somebody far from all
    count[pair] = found;
}

// The multipliers of two particles by such a list. Terms of a particle with itself are taken off at the end.
__global__ void multipliers_of_pairs(int n, const float4* __restrict__ x, const int* __restrict__ list, const int* __restrict__ count,
                                     Numbers c, float* __restrict__ out) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x, pairs = n / 2;
    if (pair >= pairs) return;
    float4 a[2] = {x[2 * pair], x[2 * pair + 1]};
    float density[2] = {0, 0}, squares[2] = {0, 0};
    float3 slopes[2] = {make_float3(0, 0, 0), make_float3(0, 0, 0)};
    for (int k = 0; k < count[pair]; k += 4) {
        float4 b[4];
#pragma unroll
        for (int l = 0; l < 4; l++) b[l] = x[list[(size_t)(k + l) * pairs + pair]];
#pragma unroll
        for (int l = 0; l < 4; l++)
#pragma unroll
            for (int q = 0; q < 2; q++)
                add_pair(a[q].x - b[l].x, a[q].y - b[l].y, a[q].z - b[l].z, c, density[q], slopes[q], squares[q]);
    }
    float2 both;
    both.x = multiplier(density[0] - c.weight * c.h * c.h * c.h, slopes[0], squares[0]);
    both.y = multiplier(density[1] - c.weight * c.h * c.h * c.h, slopes[1], squares[1]);
    ((float2*)out)[pair] = both;
}

// The same lists in another order: the eight threads whose 16 bytes are delivered together take neighbours from eight different
// sixteenths of 128 bytes, as long as they have such, so that no two of them want the same banks at a time.
void turn_lists(int n, std::vector<int>& list, const std::vector<int>& count) {
    for (int i = 0; i < n; i++) {
        std::vector<int> left[8];
        for (int k = count[i] - 1; k >= 0; k--) left[list[(size_t)k * n + i] % 8].push_back(list[(size_t)k * n + i]);
        for (int k = 0; k < count[i]; k++) {
            int from = (i + k) % 8;
            while (left[from].empty()) from = (from + 1) % 8;
            list[(size_t)k * n + i] = left[from].back();
            left[from].pop_back();
        }
    }
}

float microseconds(std::function<void()> launch) {
    std::vector<float> taken;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (int round = 0; round < 22; round++) {
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

int main(int argc, char** argv) {
    int edge = argc > 1 ? atoi(argv[1]) : 100, n = edge * edge * edge;
    float h = argc > 2 ? atof(argv[2]) : 1.95f;
    Numbers c{h, 15 / (3.14159f * powf(h, 6)), -45 / (3.14159f * powf(h, 6)), h * h, 1 / h, (int)(edge / h) + 2};
    auto shaken = [] { return 0.4f * (rand() / (float)RAND_MAX - 0.5f); };
    std::vector<float4> x;
    for (int i = 0; i < n; i++)
        x.push_back({i % edge + .5f + shaken(), i / edge % edge + .5f + shaken(), i / edge / edge + .5f + shaken(), 0});
    auto cell = [&](const float4& p) {
        return ((int)(p.z * c.per_cell) * c.cells + (int)(p.y * c.per_cell)) * c.cells + (int)(p.x * c.per_cell);
    };
    std::sort(x.begin(), x.end(), [&](const float4& a, const float4& b) { return cell(a) < cell(b); });
    std::vector<int> start(c.cells * c.cells * c.cells + 1);
    for (auto& p : x) start[cell(p) + 1]++;
    for (size_t k = 1; k < start.size(); k++) start[k] += start[k - 1];
    float unit = (edge + 1) / 2097152.f;  // places of 21 bits, without the wrapping: the tank is the period
    std::vector<uint4> compact;
    std::vector<uint2> small;
    std::vector<float4> two;
    for (auto& p : x) {
        unsigned long long a = p.x / unit, b = p.y / unit, d = p.z / unit, word = a | b << 21 | d << 42;
        small.push_back({(unsigned)word, (unsigned)(word >> 32)});
        compact.push_back({(unsigned)word, (unsigned)(word >> 32), (unsigned)rand(), 127u << 24 | (rand() & 0xffffff)});
        two.push_back(p), two.push_back({sinf(p.x), cosf(p.y), .01f * p.z, 1});
    }
    auto sent = [](auto& values) {
        void* there;
        size_t bytes = values.size() * sizeof(values[0]);
        CHECK(cudaMalloc(&there, bytes));
        CHECK(cudaMemcpy(there, values.data(), bytes, cudaMemcpyHostToDevice));
        return there;
    };
    x.push_back({1e6f, 1e6f, 1e6f, 0});
    auto *places = (float4*)sent(x), *records = (float4*)sent(two);
    auto* eights = (uint2*)sent(small);
    auto* sixteens = (uint4*)sent(compact);
    auto* starts = (int*)sent(start);
    int *list, *count, blocks = (n + THREADS - 1) / THREADS, shared = WIDTH * THREADS * 4;
    float4* out;
    CHECK(cudaMalloc(&list, 4ll * n * WIDTH));  // more than what pairs need
    CHECK(cudaMalloc(&count, 4ll * n));
    CHECK(cudaMalloc(&out, 16ll * n));
    printf("%d particles, support %.2f spacings\n", n, h);
    printf("list, written one by one    %7.1f\n", microseconds([&] { lists<false><<<blocks, THREADS>>>(n, places, starts, c, list, count); }));
    printf("list, collected             %7.1f\n", microseconds([&] { lists<true><<<blocks, THREADS, shared>>>(n, places, starts, c, list, count); }));
    auto passes = [&](const char* order) {
        printf("multipliers, 16 bytes       %7.1f  %s\n", microseconds([&] { multipliers<<<blocks, THREADS>>>(n, places, list, count, c, (float*)out); }), order);
        printf("multipliers, 8 bytes        %7.1f  %s\n", microseconds([&] { multipliers_8_bytes<<<blocks, THREADS>>>(n, eights, list, count, c, unit / 2048, (float*)out); }), order);
        printf("friction, 32 bytes          %7.1f  %s\n", microseconds([&] { friction_32_bytes<<<blocks, THREADS>>>(n, records, list, count, c, out); }), order);
        printf("friction, 16 bytes          %7.1f  %s\n", microseconds([&] { friction_16_bytes<<<blocks, THREADS>>>(n, sixteens, list, count, c, unit / 2048, out); }), order);
    };
    passes("");
    std::vector<int> lists_here((size_t)n * WIDTH), counts_here(n);
    CHECK(cudaMemcpy(lists_here.data(), list, 4ll * n * WIDTH, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(counts_here.data(), count, 4ll * n, cudaMemcpyDeviceToHost));
    turn_lists(n, lists_here, counts_here);
    CHECK(cudaMemcpy(list, lists_here.data(), 4ll * n * WIDTH, cudaMemcpyHostToDevice));
    passes("in turns of banks");
    std::vector<float> alone(n), together(n);
    multipliers<<<blocks, THREADS>>>(n, places, list, count, c, (float*)out);
    CHECK(cudaMemcpy(alone.data(), out, 4ll * n, cudaMemcpyDeviceToHost));
    printf("list of pairs               %7.1f\n", microseconds([&] { lists_of_pairs<<<(n / 2 + PAIRS - 1) / PAIRS, PAIRS, WIDTH_OF_PAIRS * PAIRS * 4>>>(n, places, starts, c, list, count); }));
    printf("multipliers of pairs        %7.1f\n", microseconds([&] { multipliers_of_pairs<<<(n / 2 + THREADS - 1) / THREADS, THREADS>>>(n, places, list, count, c, (float*)out); }));
    CHECK(cudaMemcpy(together.data(), out, 4ll * n, cudaMemcpyDeviceToHost));
    float largest = 0, difference = 0;
    for (int i = 0; i < n; i++) {
        largest = std::max(largest, std::fabs(alone[i]));
        difference = std::max(difference, std::fabs(alone[i] - together[i]));
    }
    CHECK(cudaMemcpy(counts_here.data(), count, 2ll * n, cudaMemcpyDeviceToHost));
    long entries = 0;
    for (int k = 0; k < n / 2; k++) entries += counts_here[k];
    printf("%.1f entries per pair, itself included; multipliers differ by %.1e of the largest\n", entries / (n / 2.), difference / largest);
    return 0;
}
