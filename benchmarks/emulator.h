/* What translated kernels (ptx.py) are made of: one function of C per kernel, which is one thread of it. */
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

struct thread;
struct together { /* what threads do together; they may be switched there, and only there */
    void (*barrier)(struct thread *);
    u32 (*shuffle)(struct thread *, int mode, u32 value, u32 lane, u32 clamp, u32 *taken);
    u32 (*vote)(struct thread *, u32 flag);
    void (*poll)(struct thread *);
    void (*stop)(const char *);
};
struct thread {
    u32 index, size, block, blocks; /* %tid.x, %ntid.x, %ctaid.x, %nctaid.x */
    u8 *shared;
    const struct together *with;
};

static inline float f32(u32 bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline u32 b32(float x) { u32 bits; memcpy(&bits, &x, 4); return bits; }
static inline double f64(u64 bits) { double x; memcpy(&x, &bits, 8); return x; }
static inline u64 b64(double x) { u64 bits; memcpy(&bits, &x, 8); return bits; }

#define LOAD(name, type) static inline type name(u64 at) { type x; memcpy(&x, (void *)at, sizeof x); return x; }
#define STORE(name, type) static inline void name(u64 at, type x) { memcpy((void *)at, &x, sizeof x); }
LOAD(ld_u8, u8) LOAD(ld_u16, u16) LOAD(ld_u32, u32) LOAD(ld_u64, u64)
LOAD(ld_s8, s8) LOAD(ld_s16, s16) LOAD(ld_s32, s32) LOAD(ld_s64, s64)
STORE(st_u8, u8) STORE(st_u16, u16) STORE(st_u32, u32) STORE(st_u64, u64)

/* Conversions to integers stop at their ends; NaN becomes 0. */
static inline s32 to_s32(double x) { return x != x ? 0 : x <= -2147483648.0 ? INT32_MIN : x >= 2147483647.0 ? INT32_MAX : (s32)x; }
static inline u32 to_u32(double x) { return !(x > 0) ? 0 : x >= 4294967295.0 ? UINT32_MAX : (u32)x; }
static inline s64 to_s64(double x) { return x != x ? 0 : x <= -9223372036854775808.0 ? INT64_MIN : x >= 9223372036854775807.0 ? INT64_MAX : (s64)x; }
static inline u64 to_u64(double x) { return !(x > 0) ? 0 : x >= 18446744073709551615.0 ? UINT64_MAX : (u64)x; }

static inline u32 bits_of_field(u32 x, u32 from, u32 count) {
    from &= 255; count &= 255;
    return from > 31 || !count ? 0 : (x >> from) & (count > 31 ? ~0u : (1u << count) - 1);
}
static inline s32 signed_field(s32 x, u32 from, u32 count) {
    u32 field = bits_of_field((u32)x, from, count);
    from &= 255; count &= 255;
    if (!count) return 0;
    u32 top = from + count - 1;
    if (top > 31) top = 31;
    u32 sign = ((u32)x >> top) & 1;
    return sign && count < 32 ? (s32)(field | ~((1u << count) - 1)) : (s32)field;
}
static inline u32 put_field(u32 into, u32 x, u32 from, u32 count) {
    from &= 255; count &= 255;
    u32 mask = from > 31 || !count ? 0 : (count > 31 ? ~0u : (1u << count) - 1) << from;
    return (into & ~mask) | ((x << (from & 31)) & mask);
}
static inline u32 permute(u32 a, u32 b, u32 selector) {
    u64 bytes = ((u64)b << 32) | a;
    u32 result = 0;
    for (int k = 0; k < 4; k++) {
        u32 which = (selector >> (4 * k)) & 15;
        u32 byte = (u32)(bytes >> (8 * (which & 7))) & 255;
        if (which & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << (8 * k);
    }
    return result;
}
static inline u32 turned(u32 x) { u32 r = 0; for (int k = 0; k < 32; k++) r |= ((x >> k) & 1) << (31 - k); return r; }
