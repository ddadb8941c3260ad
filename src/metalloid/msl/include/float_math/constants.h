// Constants that several headers need; a value with a low part is an unevaluated sum of floats.
#pragma once

namespace metalloid::float_math {

constexpr float log2_e = 0x1.715476p+0f;
constexpr float log2_e_low = 0x1.4ae0cp-26f;
constexpr float log10_e = 0x1.bcb7b2p-2f;
constexpr float log10_e_low = -0x1.5b235ep-27f;
constexpr float log2_10 = 0x1.a934fp+1f;
constexpr float log10_2_high = 0x1.344136p-2f;
constexpr float log10_2_low = -0x1.ec10cp-27f;
constexpr float ln2_high = 0x1.62e43p-1f;
constexpr float ln2_low = -0x1.05c61p-29f;

// Rounded down, so that all parts are positive and 0 * part keeps the sign of the zero.
constexpr float half_pi_high = 0x1.921fb4p+0f;
constexpr float half_pi_middle = 0x1.4442dp-24f;
constexpr float half_pi_low = 0x1.84698ap-48f;
constexpr float pi_high = 2.0f * half_pi_high;
constexpr float pi_low = 2.0f * half_pi_middle;
constexpr float pi_lowest = 2.0f * half_pi_low;
constexpr float two_over_pi = 0x1.45f306p-1f;
constexpr float one_over_pi = 0x1.45f306p-2f;

// pi/2 to 2^-45.8 as a product: fused(factor, cofactor, r) adds it with a single rounding.
constexpr float half_pi_factor = 0x1.aee9d6p+0f;
constexpr float half_pi_cofactor = 0x1.ddcb02p-1f;

}  // namespace metalloid::float_math
