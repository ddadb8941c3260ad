// Argument reduction modulo pi/2 for huge floats.
//
// Payne & Hanek 1983 in fixed point (Muller, Elementary Functions, 3rd ed., 11.4): x is an integer
// M < 2^24 times a power of two, so only a 96-bit window of the bits of 2/pi can influence
// x * 2/pi mod 4. The product of M and that window, taken mod 2^96, holds the quadrant in its top
// two bits and 2^-70 of absolute accuracy, while no float comes closer than 2^-33 to a multiple of
// pi/2, so the fraction is good to more than a float's 24 bits.
#pragma once

#include "constants.h"
#include "core.h"

namespace metalloid::float_math {

// One of five words; selects instead of a table keep the SPMD vectoriser away from gathers.
METALLOID_INLINE uint32 select_word(uint32 index, uint32 w0, uint32 w1, uint32 w2, uint32 w3,
                                    uint32 w4) {
  uint32 word = w0;
  word = index == 1u ? w1 : word;
  word = index == 2u ? w2 : word;
  word = index == 3u ? w3 : word;
  word = index == 4u ? w4 : word;
  return word;
}

// The 32 bits of high:low that start `shift` (0..31) bits below the top.
METALLOID_INLINE uint32 funnel_left(uint32 high, uint32 low, uint32 shift) {
  const uint64 both = (static_cast<uint64>(high) << 32) | low;
  return static_cast<uint32>((both << shift) >> 32);
}

// Rest (below 1 ulp) of x = quarters * pi/2 + rest for |x| >= 2^10; NaN for inf and NaN. Only the low
// two bits of `quarters` mean anything. (They are not returned as a pair: ABIs make
// one number of 64 bits of it, which would remain one after a branch.)
METALLOID_INLINE float reduce_huge_angle(float x, uint32& quarters) {
  METALLOID_STRICT_FP
  // 2/pi = 0.p1 p2 p3 ... in words of 32 bits; p0 = 0 makes the first window start inside.
  constexpr uint32 p0 = 0, p1 = 0xa2f9836eu, p2 = 0x4e441529u, p3 = 0xfc2757d1u;
  constexpr uint32 p4 = 0xf534ddc0u, p5 = 0xdb629599u, p6 = 0x3c439041u, p7 = 0xfe5163abu;

  // |x| = M 2^(biased - 150): bits of 2/pi above weight 2^(151 - biased) add multiples of 4.
  const uint32 biased = magnitude_bits(x) >> 23;
  const uint64 integer = (bits_of(x) & mantissa_mask) | 0x00800000u;
  const uint32 first_bit = biased - 120u;
  const uint32 index = first_bit >> 5;
  const uint32 shift = first_bit & 31u;
  const uint32 w0 = select_word(index, p0, p1, p2, p3, p4);
  const uint32 w1 = select_word(index, p1, p2, p3, p4, p5);
  const uint32 w2 = select_word(index, p2, p3, p4, p5, p6);
  const uint32 w3 = select_word(index, p3, p4, p5, p6, p7);

  const uint64 high = integer * funnel_left(w0, w1, shift);
  const uint64 middle = integer * funnel_left(w1, w2, shift);
  const uint64 low = integer * funnel_left(w2, w3, shift);
  const uint64 product = (high << 32) + middle + (low >> 32);

  // Round to the nearest quarter; the fraction becomes a signed 63-bit number.
  const int64 fraction = static_cast<int64>(product << 2);
  const uint32 below_half = static_cast<uint32>(product >> 62);
  const uint32 unsigned_quarters = below_half + (fraction < 0 ? 1u : 0u);
  const int64 fraction63 = fraction >> 1;
  const float head = static_cast<float>(fraction63);
  const float tail = static_cast<float>(fraction63 - static_cast<int64>(head));

  // fraction * pi/2 with pi/2 in two floats; rounded once.
  constexpr float scale_high = half_pi_high * 0x1p-63f;
  constexpr float scale_low = half_pi_middle * 0x1p-63f;
  const float correction = fused(head, scale_low, tail * scale_high);
  const float rest = flip_sign(fused(head, scale_high, correction), sign_bit(x));
  quarters = is_negative(x) ? 0u - unsigned_quarters : unsigned_quarters;
  return choose(is_nan_or_infinite(x), quiet_nan(), rest);
}

}  // namespace metalloid::float_math
