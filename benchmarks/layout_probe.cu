// What passes over neighbours make of teams of threads, of the layout of lists, and of the order of particles: λ of PBF and the
// friction of DC-PBD in plain CUDA C++, on a jittered lattice, records as in src/viscoil/sph/records.py.
//
//     nvcc -O3 -use_fast_math -arch=sm_90 -std=c++17 -o probe benchmarks/layout_probe.cu && ./probe 100 1.95 && ./probe 100 2.5
//
// Arguments: particles along an edge, support in spacings. Prints microseconds, medians of 20 (of one with ONCE set, for profilers).
//   layout   columns: entry k of particle i at k n + i; fours: four entries of a particle lie together, taken by one load
//   team     threads that share a particle; each takes four entries in a row, or every team-th
//   order    particles in rows of cells (4 x 1 x 2 per support), along Morton's curve, or in tiles of supports
// Sums of teams count their own particle more than once (who fills up lists is i itself): they are printed to show that passes
// are not optimised away.
#include "probe.cuh"

constexpr int WIDTH = 96;
enum Layout { COLUMNS, FOURS };
enum Share { IN_A_ROW, IN_TURNS };

// The four names a member of a team has from entry k0 on.
template <int T, Layout L, Share S>
__device__ __forceinline__ void names(int (&j)[4], const int* __restrict__ list, int n, int i, int m, int k0, int count) {
    if constexpr (L == FOURS && T == 1) {
        int4 v = *(const int4*)(list + 4 * ((size_t)(k0 >> 2) * n + i));
        j[0] = v.x, j[1] = v.y, j[2] = v.z, j[3] = v.w;
    } else {
#pragma unroll
        for (int l = 0; l < 4; l++) {
            int k = k0 + (S == IN_TURNS ? l * T + m : 4 * m + l);
            size_t at = L == FOURS ? 4 * ((size_t)(k >> 2) * n + i) + (k & 3) : (size_t)k * n + i;
            j[l] = T == 1 || k < count ? list[at] : i;
        }
    }
}

template <int T>
__device__ __forceinline__ float sum(float v) {
#pragma unroll
    for (int s = 1; s < T; s *= 2) v += __shfl_xor_sync(0xffffffffu, v, s);
    return v;
}

template <int T, Layout L, Share S, int BLOCK>
__global__ void __launch_bounds__(BLOCK) multipliers(int n, const float4* __restrict__ x, const int* __restrict__ list,
                                                     const int* __restrict__ count, Numbers c, float* __restrict__ out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, i = min(t / T, n - 1), m = t % T;
    float4 a = x[i];
    float density = 0, squares = 0;
    float3 s = make_float3(0, 0, 0);
    int number = count[i], j[4], next[4];
    names<T, L, S>(j, list, n, i, m, 0, number);
    for (int k = 0; k < number; k += 4 * T) {
        names<T, L, S>(next, list, n, i, m, min(k + 4 * T, (number - 1) / (4 * T) * (4 * T)), number);
        float4 b[4];
#pragma unroll
        for (int l = 0; l < 4; l++) b[l] = x[j[l]];
#pragma unroll
        for (int l = 0; l < 4; l++) add_pair(a.x - b[l].x, a.y - b[l].y, a.z - b[l].z, c, density, s, squares);
#pragma unroll
        for (int l = 0; l < 4; l++) j[l] = next[l];
    }
    density = sum<T>(density), squares = sum<T>(squares), s.x = sum<T>(s.x), s.y = sum<T>(s.y), s.z = sum<T>(s.z);
    if (m == 0) out[i] = multiplier(density, s, squares);
}

__device__ __forceinline__ float digits(unsigned bits, unsigned mask) { return __uint_as_float((bits & mask) | 0x4B000000u); }

__device__ __forceinline__ uint3 place(unsigned low, unsigned high) {
    return make_uint3(low, __funnelshift_l(low, high, 11), high >> 10);
}

__device__ __forceinline__ float3 velocity(unsigned low, unsigned high) {
    float scale = __uint_as_float(high & 0x7F800000u);
    float x = digits(low, 0x3FFFF), y = digits(__funnelshift_l(low, high, 14), 0x3FFFF), z = digits(high >> 4, 0x3FFFF);
    return make_float3(scale * (x - 8519680.f), scale * (y - 8519680.f), scale * (z - 8519680.f));
}

__device__ __forceinline__ void rub(float x, float y, float z, float3 u, float3 w, float q_j, const Numbers& c, float3& total) {
    float r2 = x * x + y * y + z * z, inverse = rsqrtf(fmaxf(r2, 1e-20f)), q = r2 * inverse * c.per_support, s = 1.f - q;
    float g = q < 0.5f ? 3.f * q - 2.f : (q < 1.f ? -s * s * inverse : 0.f);
    g *= q_j + (x * (u.x - w.x) + y * (u.y - w.y) + z * (u.z - w.z)) * inverse * inverse;
    total.x += g * x, total.y += g * y, total.z += g * z;
}

template <int T, Layout L, Share S, int BLOCK>
__global__ void __launch_bounds__(BLOCK) friction(int n, const uint4* __restrict__ r, const float* __restrict__ bulk,
                                                  const int* __restrict__ list, const int* __restrict__ count, Numbers c,
                                                  float unit, float4* __restrict__ out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, i = min(t / T, n - 1), m = t % T;
    uint4 own = r[i];
    uint3 a = place(own.x, own.y);
    a.x += 0x100000, a.y += 0x100000, a.z += 0x100000;
    float3 u = velocity(own.z, own.w), total = make_float3(0, 0, 0);
    int number = count[i], j[4], next[4];
    names<T, L, S>(j, list, n, i, m, 0, number);
    for (int k = 0; k < number; k += 4 * T) {
        names<T, L, S>(next, list, n, i, m, min(k + 4 * T, (number - 1) / (4 * T) * (4 * T)), number);
        uint4 b[4];
        float q[4];
#pragma unroll
        for (int l = 0; l < 4; l++) b[l] = r[j[l]], q[l] = bulk[j[l]];
#pragma unroll
        for (int l = 0; l < 4; l++) {
            uint3 o = place(b[l].x, b[l].y);
            float x = unit * (digits(a.x - o.x, 0x1FFFFF) - 9437184.f), y = unit * (digits(a.y - o.y, 0x1FFFFF) - 9437184.f);
            rub(x, y, unit * (digits(a.z - o.z, 0x1FFFFF) - 9437184.f), u, velocity(b[l].z, b[l].w), q[l], c, total);
        }
#pragma unroll
        for (int l = 0; l < 4; l++) j[l] = next[l];
    }
    total.x = sum<T>(total.x), total.y = sum<T>(total.y), total.z = sum<T>(total.z);
    if (m == 0) out[i] = make_float4(total.x, total.y, total.z, 0);
}

enum Written { IN_COLUMNS, FOURS_BY_WORDS, FOURS_AT_ONCE };

template <Written W>
__global__ void lists(int n, const float4* __restrict__ x, const int* __restrict__ start, Numbers c, int* __restrict__ list,
                      int* __restrict__ count) {
    extern __shared__ int basket[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, found = 0;
    if (i >= n) return;
    search(i, x[i], x, start, c, [&](int j) { basket[min(found++, WIDTH - 5) * THREADS + threadIdx.x] = j; });
    found = min(found, WIDTH - 4);
    for (int k = found; k < (found + 3) / 4 * 4; k++) basket[k * THREADS + threadIdx.x] = i;
    for (int k = 0; k < found; k += 4) {
        int v[4];
#pragma unroll
        for (int l = 0; l < 4; l++) v[l] = basket[(k + l) * THREADS + threadIdx.x];
        if constexpr (W == FOURS_AT_ONCE) {
            *(int4*)(list + 4 * ((size_t)(k >> 2) * n + i)) = make_int4(v[0], v[1], v[2], v[3]);
        } else {
#pragma unroll
            for (int l = 0; l < 4; l++) list[W == FOURS_BY_WORDS ? 4 * ((size_t)(k >> 2) * n + i) + l : (size_t)(k + l) * n + i] = v[l];
        }
    }
    count[i] = found;
}

struct Load {
    int n;
    Numbers c;
    float unit;  // of places of 21 bits: the tank is the period
    float4 *places, *out;
    uint4* records;
    float* bulk;
    int *columns, *fours, *count;
};

template <int T, Layout L, Share S, int BLOCK>
void passes(const Load& a) {
    const int* list = L == FOURS ? a.fours : a.columns;
    int blocks = ((long)a.n * T + BLOCK - 1) / BLOCK;
    float one = microseconds([&] { multipliers<T, L, S, BLOCK><<<blocks, BLOCK>>>(a.n, a.places, list, a.count, a.c, (float*)a.out); });
    std::vector<float> found(a.n);
    CHECK(cudaMemcpy(found.data(), a.out, 4ll * a.n, cudaMemcpyDeviceToHost));
    double total = 0;
    for (float value : found) total += value;
    float two = microseconds([&] { friction<T, L, S, BLOCK><<<blocks, BLOCK>>>(a.n, a.records, a.bulk, list, a.count, a.c, a.unit, a.out); });
    printf("  team %d, %s, %s, blocks of %d: multipliers %.1f, friction %.1f (sum %.1f)\n", T, L == FOURS ? "fours" : "columns",
           S == IN_TURNS ? "in turns" : "in a row", BLOCK, one, two, total);
}

// Bits of v, two places free between them.
unsigned long long spread(unsigned v) {
    unsigned long long all = 0;
    for (int bit = 0; bit < 12; bit++) all |= (unsigned long long)(v >> bit & 1) << 3 * bit;
    return all;
}

unsigned long long morton(const float4& p, float per_metre) {
    return spread(p.x * per_metre) | spread(p.y * per_metre) << 1 | spread(p.z * per_metre) << 2;
}

int main(int argc, char** argv) {
    Load a;
    int edge = argc > 1 ? atoi(argv[1]) : 100, n = a.n = edge * edge * edge;
    float h = argc > 2 ? atof(argv[2]) : 1.95f;
    int blocks = (n + THREADS - 1) / THREADS, shared = WIDTH * THREADS * 4;
    CHECK(cudaMalloc(&a.columns, 4ll * n * WIDTH));
    CHECK(cudaMalloc(&a.fours, 4ll * n * WIDTH));
    CHECK(cudaMalloc(&a.count, 4ll * n));
    CHECK(cudaMalloc(&a.out, 16ll * n));
    const int shape[3] = {4, 1, 2};
    a.c = numbers_of(edge, h, shape);
    auto coordinate = [&](const float4& p, int axis) { return (int)((axis == 0 ? p.x : axis == 1 ? p.y : p.z) * shape[axis] / h); };
    std::vector<float4> x = lattice(edge);
    const std::vector<int> start = sorted_into_cells(x, a.c);
    a.unit = (edge + 1) / 2097152.f;
    std::vector<uint4> compact;
    std::vector<float> bulk;
    for (auto& p : x) {
        unsigned long long u = p.x / a.unit, v = p.y / a.unit, w = p.z / a.unit, word = u | v << 21 | w << 42;
        compact.push_back({(unsigned)word, (unsigned)(word >> 32), (unsigned)rand(), 110u << 23 | (rand() & 0x7fffff)});
        bulk.push_back(p.x);
    }
    a.places = sent(x), a.records = sent(compact), a.bulk = sent(bulk);
    auto* starts = sent(start);
    for (auto* kernel : {lists<IN_COLUMNS>, lists<FOURS_BY_WORDS>, lists<FOURS_AT_ONCE>})
        CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    printf("%d particles, support %.2f spacings\nlist: ", n, h);
    printf("columns %.1f, ", microseconds([&] { lists<IN_COLUMNS><<<blocks, THREADS, shared>>>(n, a.places, starts, a.c, a.columns, a.count); }));
    printf("fours by words %.1f, ", microseconds([&] { lists<FOURS_BY_WORDS><<<blocks, THREADS, shared>>>(n, a.places, starts, a.c, a.fours, a.count); }));
    printf("fours at once %.1f\n", microseconds([&] { lists<FOURS_AT_ONCE><<<blocks, THREADS, shared>>>(n, a.places, starts, a.c, a.fours, a.count); }));
    std::vector<int> kept((size_t)n * WIDTH), number(n);
    CHECK(cudaMemcpy(kept.data(), a.columns, 4ll * n * WIDTH, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(number.data(), a.count, 4ll * n, cudaMemcpyDeviceToHost));
    printf("rows\n");
    passes<1, COLUMNS, IN_A_ROW, 256>(a), passes<1, FOURS, IN_A_ROW, 256>(a), passes<1, FOURS, IN_A_ROW, 128>(a);
    passes<2, COLUMNS, IN_A_ROW, 256>(a), passes<2, COLUMNS, IN_TURNS, 256>(a), passes<2, FOURS, IN_TURNS, 256>(a);
    passes<4, COLUMNS, IN_A_ROW, 256>(a), passes<4, COLUMNS, IN_TURNS, 256>(a), passes<4, FOURS, IN_TURNS, 256>(a);
    passes<8, COLUMNS, IN_A_ROW, 256>(a), passes<8, COLUMNS, IN_TURNS, 256>(a), passes<8, FOURS, IN_TURNS, 256>(a);
    const char* orders[] = {"Morton, cells of half a spacing", "Morton, cells of half a support", "tiles of 4 x 4 x 4 supports", "tiles of 2 x 2 x 2 supports"};
    for (int order = 0; order < 4; order++) {
        std::vector<std::pair<unsigned long long, int>> keys(n);
        for (int i = 0; i < n; i++) {
            int edge_of_tile = order == 2 ? 4 : 2;
            unsigned long long tile = 0, inner = 0;
            for (int axis = 2; axis >= 0; axis--) {
                int at = coordinate(x[i], axis), size = edge_of_tile * shape[axis];
                tile = tile * 1000 + at / size, inner = inner * size + at % size;
            }
            keys[i] = {order < 2 ? morton(x[i], order == 0 ? 2.f : 2.f / h) : tile * 1000000ull + inner, i};
        }
        std::stable_sort(keys.begin(), keys.end(), [](auto& p, auto& q) { return p.first < q.first; });
        std::vector<int> place_of(n), count(n), columns((size_t)n * WIDTH), fours((size_t)n * WIDTH);
        for (int p = 0; p < n; p++) place_of[keys[p].second] = p;
        std::vector<float4> y(n);
        std::vector<uint4> records(n);
        std::vector<float> pressures(n);
        for (int p = 0; p < n; p++) {
            int i = keys[p].second;
            y[p] = x[i], records[p] = compact[i], pressures[p] = bulk[i], count[p] = number[i];
            for (int k = 0; k < (number[i] + 3) / 4 * 4; k++)
                columns[(size_t)k * n + p] = fours[4 * ((size_t)(k >> 2) * n + p) + (k & 3)] = place_of[kept[(size_t)k * n + i]];
        }
        auto put = [](void* there, auto& values) { CHECK(cudaMemcpy(there, values.data(), values.size() * sizeof(values[0]), cudaMemcpyHostToDevice)); };
        put(a.places, y), put(a.records, records), put(a.bulk, pressures), put(a.count, count), put(a.columns, columns), put(a.fours, fours);
        printf("%s\n", orders[order]);
        passes<1, COLUMNS, IN_A_ROW, 256>(a), passes<1, FOURS, IN_A_ROW, 256>(a), passes<1, FOURS, IN_A_ROW, 128>(a);
    }
    return 0;
}
