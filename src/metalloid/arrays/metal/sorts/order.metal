// The order of elements, of whatever type, as that of unsigned numbers: kernels that sort and
// search see elements as the bits that they are.

template <typename Bits>
struct Order {
  Bits sign;        // the bit that negative ones have; 0 for unsigned numbers
  Bits flip;        // what changes in negative ones: all bits of floats, the sign of integers
  Bits minus_zero;  // equal to 0
  Bits infinity;    // the largest magnitude that is no NaN; NaN is larger than all numbers
  Bits turn;        // all bits if the largest is first

  METAL_FUNC Bits key(Bits bits) const {
    const bool is_nan = Bits(bits & Bits(~sign)) > infinity;
    const Bits number = bits == minus_zero ? Bits(0) : bits;
    const Bits rising = Bits(number ^ ((number & sign) != 0 ? flip : sign));
    return Bits((is_nan ? Bits(~Bits(0)) : rising) ^ turn);
  }

  // The bits of an element with a key; those of one NaN for all NaNs.
  METAL_FUNC Bits bits(Bits key) const {
    const Bits rising = Bits(key ^ turn);
    return Bits(rising ^ ((rising & sign) != 0 ? sign : flip));
  }
};
