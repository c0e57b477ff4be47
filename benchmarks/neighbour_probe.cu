// What plain CUDA C++ makes of our passes over neighbours, and what their time depends on: bytes fetched per neighbour, registers,
// scattered stores, and the shape of the cells whose order particles are in. A jittered lattice, lists in columns, as in
// src/viscoil/sph.
//
//     nvcc -O3 -use_fast_math -arch=sm_90 -std=c++17 -o probe benchmarks/neighbour_probe.cu && ./probe 100 1.95 && ./probe 100 2.5
//
// Arguments: particles along an edge, support in spacings. Prints microseconds, medians of 20, a column for each shape of cells.
#include "probe.cuh"

constexpr int WIDTH = 92;    // entries of a list
constexpr int SHAPES[][3] = {{1, 1, 1}, {4, 1, 1}, {4, 1, 2}, {4, 1, 3}, {4, 2, 2}, {2, 2, 2}, {2, 1, 3}};  // cells per support

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
    float r2 = x * x + y * y + z * z, inverse = rsqrtf(fmaxf(r2, 1e-20f)), q = r2 * inverse * c.per_support, s = 1.f - q;
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
    search(i, x[i], x, start, c, [&](int j) {
        int at = min(found++, WIDTH - 1);
        if (collected)
            basket[at * THREADS + threadIdx.x] = j;
        else
            list[(size_t)at * n + i] = j;
    });
    found = min(found, WIDTH);
    if (collected)
        for (int k = 0; k < found; k++) list[(size_t)k * n + i] = basket[k * THREADS + threadIdx.x];
    for (int k = found; k < (found + 3) / 4 * 4; k++) list[(size_t)k * n + i] = i;
    count[i] = found;
}

int main(int argc, char** argv) {
    int edge = argc > 1 ? atoi(argv[1]) : 100, n = edge * edge * edge;
    float h = argc > 2 ? atof(argv[2]) : 1.95f;
    std::vector<float4> x;
    int *list, *count, blocks = (n + THREADS - 1) / THREADS, shared = WIDTH * THREADS * 4;
    float4* out;
    CHECK(cudaMalloc(&list, 4ll * n * WIDTH));
    CHECK(cudaMalloc(&count, 4ll * n));
    CHECK(cudaMalloc(&out, 16ll * n));
    printf("%d particles, support %.2f spacings\n", n, h);
    printf("cells per support  list: one by one  collected  multipliers: 16 bytes  8 bytes  friction: 32 bytes  16 bytes  sum\n");
    const auto shuffled = lattice(edge);
    for (auto& shape : SHAPES) {
        x = shuffled;
        const Numbers c = numbers_of(edge, h, shape);
        const std::vector<int> start = sorted_into_cells(x, c);
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
        auto *places = sent(x), *records = sent(two);
        auto* eights = sent(small);
        auto* sixteens = sent(compact);
        auto* starts = sent(start);
        printf("%5d x %d x %d", shape[0], shape[1], shape[2]);
        printf(" %20.1f", microseconds([&] { lists<false><<<blocks, THREADS>>>(n, places, starts, c, list, count); }));
        printf(" %10.1f", microseconds([&] { lists<true><<<blocks, THREADS, shared>>>(n, places, starts, c, list, count); }));
        printf(" %22.1f", microseconds([&] { multipliers<<<blocks, THREADS>>>(n, places, list, count, c, (float*)out); }));
        std::vector<float> found(n);
        CHECK(cudaMemcpy(found.data(), out, 4ll * n, cudaMemcpyDeviceToHost));
        printf(" %8.1f", microseconds([&] { multipliers_8_bytes<<<blocks, THREADS>>>(n, eights, list, count, c, unit / 2048, (float*)out); }));
        printf(" %19.1f", microseconds([&] { friction_32_bytes<<<blocks, THREADS>>>(n, records, list, count, c, out); }));
        printf(" %9.1f", microseconds([&] { friction_16_bytes<<<blocks, THREADS>>>(n, sixteens, list, count, c, unit / 2048, out); }));
        double sum = 0;  // the same for all shapes, but for rounding
        for (float value : found) sum += value;
        printf(" %10.3f\n", sum);
        for (void* there : {(void*)places, (void*)records, (void*)eights, (void*)sixteens, (void*)starts}) CHECK(cudaFree(there));
    }
    return 0;
}
