// x^y with AVX-512, which looks numbers up in a register: compiler/vectorize/table_lookup.py makes one
// instruction of a load from a table as small as these.
//
// log2 x: [1, 2) has 32 cells, each with a number c near the reciprocals of what lies in it. The
// logarithm of m = (1 + r) / c is that of 1/c and a short series of r. c has seven bits, so r is
// exact; where m is near 1 or 2, c is 1 or 1/2, and r alone decides about the logarithm.
//
// The operations that wait for each other are kept few, rather than all of them: those of several
// simdgroups overlap only as far as the processor's window of instructions reaches.
#pragma once

#include "constants.h"
#include "core.h"
#include "instructions_avx512.h"

#if defined(METALLOID_HAS_AVX512)
namespace metalloid::float_math {

constexpr float reciprocal_of_cell[32] = {
    0x1p+0f, 0x1.e8p-1f, 0x1.d8p-1f, 0x1.dp-1f, 0x1.cp-1f, 0x1.b8p-1f, 0x1.a8p-1f, 0x1.ap-1f,
    0x1.98p-1f, 0x1.88p-1f, 0x1.8p-1f, 0x1.78p-1f, 0x1.7p-1f, 0x1.68p-1f, 0x1.6p-1f, 0x1.58p-1f,
    0x1.5p-1f, 0x1.48p-1f, 0x1.48p-1f, 0x1.4p-1f, 0x1.38p-1f, 0x1.3p-1f, 0x1.3p-1f, 0x1.28p-1f,
    0x1.2p-1f, 0x1.2p-1f, 0x1.18p-1f, 0x1.1p-1f, 0x1.1p-1f, 0x1.08p-1f, 0x1.08p-1f, 0x1p-1f};
// log2(1/c): multiples of 2^-15, and the rest.
constexpr float log2_of_cell_high[32] = {
    0.0f, 0x1.1bcp-4f, 0x1.e0cp-4f, 0x1.22ep-3f, 0x1.8a9p-3f, 0x1.bfcp-3f, 0x1.16ap-2f, 0x1.32cp-2f,
    0x1.4f7p-2f, 0x1.8a88p-2f, 0x1.a9p-2f, 0x1.c818p-2f, 0x1.e7ep-2f, 0x1.042cp-1f, 0x1.14c4p-1f,
    0x1.25cp-1f, 0x1.3724p-1f, 0x1.48fp-1f, 0x1.48fp-1f, 0x1.5b2cp-1f, 0x1.6dep-1f, 0x1.811p-1f,
    0x1.811p-1f, 0x1.94c4p-1f, 0x1.a9p-1f, 0x1.a9p-1f, 0x1.bddp-1f, 0x1.d338p-1f, 0x1.d338p-1f,
    0x1.e944p-1f, 0x1.e944p-1f, 0x1p+0f};
constexpr float log2_of_cell_low[32] = {
    0.0f, -0x1.9ab4p-17f, -0x1.ca2e1ap-17f, -0x1.48f554p-17f, -0x1.9fd502p-17f, 0x1.9eap-17f,
    -0x1.fd64ep-17f, -0x1.1c8f12p-22f, -0x1.134c4ep-20f, 0x1.80abfcp-18f, -0x1.a39fbep-20f,
    0x1.dc2d46p-18f, -0x1.40358ep-19f, -0x1.5a32c2p-20f, 0x1.60fe68p-17f, 0x1.408c78p-18f,
    -0x1.d448f8p-17f, -0x1.0e6ce8p-17f, -0x1.0e6ce8p-17f, 0x1.ed0cbap-20f, -0x1.eac382p-20f,
    -0x1.6b9026p-19f, -0x1.6b9026p-19f, -0x1.78b6d4p-17f, -0x1.a39fbep-19f, -0x1.a39fbep-19f,
    -0x1.62336ap-17f, 0x1.20a6dep-21f, 0x1.20a6dep-21f, 0x1.2c8a72p-17f, 0x1.2c8a72p-17f, 0.0f};
constexpr float exp2_of_sixteenths[16] = {
    0x1p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f, 0x1.3dea64p+0f,
    0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};

// |x|^y for finite x but 0, and |y| up to 2^33.
METALLOID_INLINE float power_by_tables(float x, float y) {
  METALLOID_STRICT_FP
  const float m = __avx512_getmant_from_1(x);
  const uint32 cell = bits_of(m) >> 18 & 31u;
  const float r = fused(m, reciprocal_of_cell[cell], -1.0f);

  // log2 x = high + low. The first sum is exact: multiples of 2^-15, below 150. What the second one
  // loses is `lost`, exactly.
  const float integer = __avx512_getexp(x) + log2_of_cell_high[cell];
  const float high = fused(r, log2_e, integer);
  const float lost = fused(r, log2_e, integer - high);
  const float rest_of_sum = lost + fused(r, log2_e_low, log2_of_cell_low[cell]);
  // Relative error of log2(1 + r) below 2^-32. The square is most of `low`, so it comes last: what
  // is added before is rounded where that does no harm.
  constexpr float of_square = -0x1.715476p-1f;
  const float square = r * r;
  const float of_cube = polynomial(r, 0x1.ec712ep-2f, -0x1.717096p-2f, 0x1.2122eep-2f);
  const float low = fused(square, of_square, fused(square * r, of_cube, rest_of_sum));

  // y log2 x = n + t, where n is a multiple of 1/16. It need not be the nearest one, so it does not
  // wait for `low`: |t| stays below 0.1.
  constexpr float shift_of_sixteenths = 0x1.8p19f;
  const float roughly = fused(square, of_square, high);
  const float shifted = fused(y, roughly, shift_of_sixteenths);
  const float n = shifted - shift_of_sixteenths;
  const float t = fused(y, low, fused(y, high, -n));

  // Relative error of the polynomial below 2^-29.5. Where |n| is so large that t is nonsense,
  // 1 + t slope(t) is positive for any t, and only that matters.
  const float slope =
      polynomial(t, 0x1.62e42ep-1f, 0x1.ebfbdcp-3f, 0x1.c6d9aap-5f, 0x1.3b5fa2p-7f);
  const float power = exp2_of_sixteenths[bits_of(shifted) & 15u];
  return __avx512_scalef(fused(power * t, slope, power), n);
}

}  // namespace metalloid::float_math
#endif
