// All passes, compiled once for each instruction set.
#include "density.h"
#include "list.h"
#include "motion.h"
#include "pressure.h"
#include "projection.h"

namespace viscoil {
#if defined(__AVX512F__)
extern const Passes passes_avx512 = {"AVX-512",
#else
extern const Passes passes_avx2 = {"AVX2",
#endif
                                     list_pass,    pack_pass,     multiplier_pass, correction_pass, xsph_pass,
                                     lay_out_pass, pressure_pass, residual_pass,   image_pass,      advance_pass,
                                     weigh_pass,   source_pass,   behind_pass,     acceleration_pass, relax_pass};
}  // namespace viscoil
