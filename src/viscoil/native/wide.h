// LANES floats at once, for the instruction set this file is compiled for. Everything has internal linkage: two sets of
// instructions live in one library, and the linker must never take a function of one for the other.
#pragma once
#include <immintrin.h>

namespace {

// The vector of four floats ``at`` bytes behind a.
inline __m128 vector(const float* a, unsigned at) {
    return _mm_load_ps(reinterpret_cast<const float*>(reinterpret_cast<const char*>(a) + at));
}

#if defined(__AVX512F__)

constexpr int LANES = 16;
typedef __m512 Wide;
typedef __m512i WideInt;
typedef __mmask16 Mask;

inline Wide all(float a) { return _mm512_set1_ps(a); }
inline Wide largest(Wide a, Wide b) { return _mm512_max_ps(a, b); }
inline Wide least(Wide a, Wide b) { return _mm512_min_ps(a, b); }
inline Wide fma(Wide a, Wide b, Wide c) { return _mm512_fmadd_ps(a, b, c); }
inline Wide fnma(Wide a, Wide b, Wide c) { return _mm512_fnmadd_ps(a, b, c); }  // c − ab
inline Wide read(const float* a) { return _mm512_loadu_ps(a); }
inline WideInt read(const int* a) { return _mm512_loadu_si512(a); }
inline void write(float* a, Wide v) { _mm512_storeu_ps(a, v); }
inline void write(int* a, WideInt v) { _mm512_storeu_si512(a, v); }
inline WideInt shifted(WideInt a, int bits) { return _mm512_slli_epi32(a, bits); }
// For reading single numbers again at once. In two halves: processors hand on what was just written 32 bytes at a time.
inline void spread(unsigned* a, WideInt v) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(a), _mm512_castsi512_si256(v));
    _mm256_store_si256(reinterpret_cast<__m256i*>(a + 8), _mm512_extracti64x4_epi64(v, 1));
}
inline Mask first(int count) { return Mask((1u << count) - 1u); }  // of 0 to 16 lanes
inline Wide read(const float* a, Mask m) { return _mm512_maskz_loadu_ps(m, a); }
inline WideInt read(const int* a, Mask m, int other) { return _mm512_mask_loadu_epi32(_mm512_set1_epi32(other), m, a); }
inline Mask less(Wide a, Wide b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline Mask less_but(Wide a, Wide b, WideInt who, int nobody) {
    return _mm512_mask_cmpneq_epi32_mask(less(a, b), who, _mm512_set1_epi32(nobody));
}
inline Wide keep(Mask m, Wide a) { return _mm512_maskz_mov_ps(m, a); }
inline Mask both(Mask a, Mask b) { return a & b; }
inline Mask either(Mask a, Mask b) { return a | b; }
inline Mask none() { return 0; }
inline bool any(Mask m) { return m; }
inline int number(Mask m) { return __builtin_popcount(m); }

// 1/√a to the last bit or two: 14 bits from the table, one step of Newton.
inline Wide inverse_root(Wide a) {
    const Wide y = _mm512_rsqrt14_ps(a);
    const Wide half = _mm512_mul_ps(_mm512_mul_ps(all(0.5f), a), y);
    return _mm512_mul_ps(y, _mm512_fnmadd_ps(half, y, all(1.5f)));
}

// Brings the lanes of a mask to the front.
struct Packed {
    Mask m;
    explicit Packed(Mask mask) : m(mask) {}
    Wide pack(Wide v) const { return _mm512_maskz_compress_ps(m, v); }
    WideInt pack(WideInt v) const { return _mm512_maskz_compress_epi32(m, v); }
};
inline void write(int* a, WideInt v, Mask m) { _mm512_mask_storeu_epi32(a, m, v); }
inline void write(float* a, Wide v, Mask m) { _mm512_mask_storeu_ps(a, m, v); }

template <bool half>
inline Wide four(const float* a, const unsigned* at) {
    Wide v = _mm512_castps128_ps512(vector(a, at[0]));
    v = _mm512_insertf32x4(v, vector(a, at[4]), 1);
    if (half) return _mm512_zextps256_ps512(_mm512_castps512_ps256(v));
    v = _mm512_insertf32x4(v, vector(a, at[8]), 2);
    return _mm512_insertf32x4(v, vector(a, at[12]), 3);
}

// Sums over the lanes of four numbers at once.
inline __m128 sums(Wide a, Wide b, Wide c, Wide d) {
    const Wide ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    const Wide cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xEE));
    Wide t = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
    t = _mm512_add_ps(t, _mm512_permute_ps(t, 0x4E));
    t = _mm512_add_ps(t, _mm512_permute_ps(t, 0xB1));  // each 128 bits: one sum, four times
    const WideInt corner = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(corner, t));
}

inline void transpose(Wide a, Wide b, Wide c, Wide d, Wide& x, Wide& y, Wide& z, Wide& w) {
    const Wide ab = _mm512_unpacklo_ps(a, b), cd = _mm512_unpacklo_ps(c, d);
    const Wide ef = _mm512_unpackhi_ps(a, b), gh = _mm512_unpackhi_ps(c, d);
    x = _mm512_shuffle_ps(ab, cd, 0x44);
    y = _mm512_shuffle_ps(ab, cd, 0xEE);
    z = _mm512_shuffle_ps(ef, gh, 0x44);
    w = _mm512_shuffle_ps(ef, gh, 0xEE);
}

#elif defined(__AVX2__)

constexpr int LANES = 8;
typedef __m256 Wide;
typedef __m256i WideInt;
typedef __m256 Mask;  // all bits of a lane

inline Wide all(float a) { return _mm256_set1_ps(a); }
inline Wide largest(Wide a, Wide b) { return _mm256_max_ps(a, b); }
inline Wide least(Wide a, Wide b) { return _mm256_min_ps(a, b); }
inline Wide fma(Wide a, Wide b, Wide c) { return _mm256_fmadd_ps(a, b, c); }
inline Wide fnma(Wide a, Wide b, Wide c) { return _mm256_fnmadd_ps(a, b, c); }
inline Wide read(const float* a) { return _mm256_loadu_ps(a); }
inline WideInt read(const int* a) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)); }
inline void write(float* a, Wide v) { _mm256_storeu_ps(a, v); }
inline void write(int* a, WideInt v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(a), v); }
inline WideInt shifted(WideInt a, int bits) { return _mm256_slli_epi32(a, bits); }
inline void spread(unsigned* a, WideInt v) { _mm256_store_si256(reinterpret_cast<__m256i*>(a), v); }
inline Mask first(int count) {
    const WideInt lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane));
}
inline Wide read(const float* a, Mask m) { return _mm256_maskload_ps(a, _mm256_castps_si256(m)); }
inline WideInt read(const int* a, Mask m, int other) {
    const WideInt v = _mm256_maskload_epi32(a, _mm256_castps_si256(m));
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(_mm256_set1_epi32(other)), _mm256_castsi256_ps(v), m));
}
inline Mask less(Wide a, Wide b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
inline Mask less_but(Wide a, Wide b, WideInt who, int nobody) {
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(who, _mm256_set1_epi32(nobody))), less(a, b));
}
inline Wide keep(Mask m, Wide a) { return _mm256_and_ps(m, a); }
inline Mask both(Mask a, Mask b) { return _mm256_and_ps(a, b); }
inline Mask either(Mask a, Mask b) { return _mm256_or_ps(a, b); }
inline Mask none() { return _mm256_setzero_ps(); }
inline bool any(Mask m) { return _mm256_movemask_ps(m); }
inline int number(Mask m) { return __builtin_popcount(_mm256_movemask_ps(m)); }

// 12 bits from the table and one step of Newton.
inline Wide inverse_root(Wide a) {
    const Wide y = _mm256_rsqrt_ps(a);
    const Wide half = _mm256_mul_ps(_mm256_mul_ps(all(0.5f), a), y);
    return _mm256_mul_ps(y, _mm256_fnmadd_ps(half, y, all(1.5f)));
}

// Which lanes come first, for each of the 256 masks.
struct Packing {
    alignas(32) int lane[256][8];
    constexpr Packing() : lane() {
        for (int m = 0; m < 256; m++)
            for (int k = 0, at = 0; k < 8; k++)
                if (m >> k & 1) lane[m][at++] = k;
    }
};
constexpr Packing packing;

struct Packed {
    WideInt lanes;
    explicit Packed(Mask m) : lanes(_mm256_load_si256(reinterpret_cast<const __m256i*>(packing.lane[_mm256_movemask_ps(m)]))) {}
    Wide pack(Wide v) const { return _mm256_permutevar8x32_ps(v, lanes); }
    WideInt pack(WideInt v) const { return _mm256_permutevar8x32_epi32(v, lanes); }
};
inline void write(int* a, WideInt v, Mask m) { _mm256_maskstore_epi32(a, _mm256_castps_si256(m), v); }
inline void write(float* a, Wide v, Mask m) { _mm256_maskstore_ps(a, _mm256_castps_si256(m), v); }

template <bool half>
inline Wide four(const float* a, const unsigned* at) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(vector(a, at[0])), vector(a, at[4]), 1);
}

inline __m128 sums(Wide a, Wide b, Wide c, Wide d) {
    const Wide ab = _mm256_hadd_ps(a, b), cd = _mm256_hadd_ps(c, d), t = _mm256_hadd_ps(ab, cd);
    return _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
}

inline void transpose(Wide a, Wide b, Wide c, Wide d, Wide& x, Wide& y, Wide& z, Wide& w) {
    const Wide ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
    const Wide ef = _mm256_unpackhi_ps(a, b), gh = _mm256_unpackhi_ps(c, d);
    x = _mm256_shuffle_ps(ab, cd, 0x44);
    y = _mm256_shuffle_ps(ab, cd, 0xEE);
    z = _mm256_shuffle_ps(ef, gh, 0x44);
    w = _mm256_shuffle_ps(ef, gh, 0xEE);
}

#endif

// Where the records of LANES particles lie, in bytes: 2^bits each. Through memory: taking a register apart costs more than
// reading again. Offsets have 32 bits, which is enough for 134 million records of 32 bytes (fluid.py asks).
struct Places {
    alignas(64) unsigned at[LANES];
    Places(WideInt who, int bits) {
        spread(at, shifted(who, bits));
        __asm__ volatile("" : "+m"(at));
    }
};

// x, y, z, w of LANES particles out of an array of four floats each. half: the second half of the lanes is not needed.
template <bool half>
inline void fetch(const float* a, const Places& p, Wide& x, Wide& y, Wide& z, Wide& w) {
    transpose(four<half>(a, p.at), four<half>(a, p.at + 1), four<half>(a, p.at + 2), four<half>(a, p.at + 3), x, y, z, w);
}

// Three floats of memory, of which nothing behind them may be touched.
inline __m128 read3(const float* a) {
    const __m128 xy = _mm_castpd_ps(_mm_load_sd(reinterpret_cast<const double*>(a)));
    return _mm_movelh_ps(xy, _mm_load_ss(a + 2));
}
inline void write3(float* a, __m128 v) {
    _mm_store_sd(reinterpret_cast<double*>(a), _mm_castps_pd(v));
    _mm_store_ss(a + 2, _mm_movehl_ps(v, v));
}

// less ? a : b, lane by lane.
inline Wide where(Mask m, Wide a, Wide b) {
#if defined(__AVX512F__)
    return _mm512_mask_blend_ps(m, b, a);
#else
    return _mm256_blendv_ps(b, a, m);
#endif
}

inline Wide dot(Wide x, Wide y, Wide z) { return fma(z, z, fma(y, y, x * x)); }

// The same rounded after each operation, in the order the search's kernels have after compilation: so that, of pairs whose
// distance is the reach but for rounding, both list the same. (All such pairs weigh nothing: W vanishes there.)
inline Wide square(Wide x, Wide y, Wide z) { return y * y + z * z + x * x; }

}  // namespace
