// Fourier transforms of many rows, by the algorithm of Stockham (D. Bailey, "FFTs in external or
// hierarchical memory", 1990): a threadgroup holds some rows, and in every stage its threads take
// all of them to registers and put them back in the order in which the next stage expects them.
//
// What is longer than a threadgroup's memory takes several passes: a row of a * b elements is
// transformed along its columns, multiplied by twiddle factors, and transformed along its rows. What has large prime
// factors is a convolution with a chirp (L. Bluestein, 1970).
//
// An inverse transform is a transform with real and imaginary parts exchanged, before and after.
namespace fourier {

constexpr constant uint threads = 512;
constexpr constant uint bytes = 32768;  // of a threadgroup's memory

// Numbers that a threadgroup holds, and each of its threads.
template <typename T>
constexpr constant uint capacity = bytes / sizeof(vec<T, 2>);
template <typename T>
constexpr constant uint each = capacity<T> / threads;

// A number to divide by, and 2^32 divided by it, rounded up. Exact for what a threadgroup counts.
struct Divisor {
  uint by, factor;
};

METAL_FUNC uint quotient(uint number, Divisor divisor) {
  return divisor.by == 1 ? number : mulhi(number, divisor.factor);
}

// Source or destination of a pass. An element is addressed by its transform (in three axes) and its
// index in that, which depends on its index in this pass and the row.
struct Operand {
  long start, batch, middle, row;           // in memory
  long step;                                // of the index, in memory
  uint index_row, index_middle, index_step;
  uint count;      // elements of a transform there are: others are 0, or not written
  uint mirror;     // length of a transform with Hermitian symmetry, of which there is half; or 0
  uint by_rows;    // whether neighbours are of different rows
  uint exchanged;  // whether real and imaginary parts are swapped
};

// How a threadgroup goes about its rows.
struct Plan {
  uint length;
  uint across;                // rows of a threadgroup
  uint tile_row, tile_step;  // steps in its memory
  uint stages;
  Divisor of_across, of_length;
  uint radices[12];
  Divisor done[12], many[12];  // for each stage: numbers already transformed, and all transforms
  uint twiddles[12];              // and where its table of twiddle factors begins
};

struct Pass {
  Operand from, to;
  uint rows;
  uint around;                  // steps of a full rotation of the twiddle factors; 0: none
  uint coarse, fine, fine_bits; // where their tables begin, and bits of the second one's index
  uint is_chirp;                // whether they turn with the square of the row
  Plan plan;
};

// The row and the element of a thread's number.
METAL_FUNC uint2 row_and_element(constant Plan &plan, bool by_rows, uint number) {
  const Divisor divisor = by_rows ? plan.of_across : plan.of_length;
  const uint outer = quotient(number, divisor), within = number - outer * divisor.by;
  return by_rows ? uint2(within, outer) : uint2(outer, within);
}

// Where it lies in the threadgroup's memory: such that threads which step over powers of two meet
// different banks of it. What is beyond the last number is somewhere inside.
template <typename T>
METAL_FUNC uint tile_index(constant Plan &plan, uint row, uint element) {
  const uint at = row * plan.tile_row + element * plan.tile_step;
  return (at ^ (at >> 4 & 15)) % capacity<T>;
}

template <typename T>
using Complex = vec<T, 2>;

template <typename T>
METAL_FUNC Complex<T> product(Complex<T> a, Complex<T> b) {
  #pragma clang fp contract(fast)
  return Complex<T>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// -i a, a quarter of a turn.
template <typename T>
METAL_FUNC Complex<T> quarter(Complex<T> a) {
  return Complex<T>(a.y, -a.x);
}

// A side as a threadgroup sees it: read once, for all elements.
struct Reach {
  long start, row, step;
  uint index, index_row, index_step, count, mirror;
  bool by_rows, is_exchanged;
};

METAL_FUNC Reach reach_of(constant Operand &operand, uint batch, uint middle) {
  return Reach{operand.start + operand.batch * batch + operand.middle * middle, operand.row, operand.step,
               operand.index_middle * middle, operand.index_row, operand.index_step, operand.count,
               operand.mirror, operand.by_rows != 0, operand.exchanged != 0};
}

METAL_FUNC uint index_of(thread const Reach &reach, uint row, uint element) {
  return reach.index + reach.index_row * row + reach.index_step * element;
}

METAL_FUNC long address_of(thread const Reach &reach, uint row, uint index) {
  return reach.start + reach.row * row + reach.step * index;
}

template <typename T>
METAL_FUNC Complex<T> complex_of(T value) {
  return Complex<T>(value, T(0));
}

template <typename T>
METAL_FUNC Complex<T> complex_of(Complex<T> value) {
  return value;
}

template <typename T>
METAL_FUNC void put(device T *to, Complex<T> value) {
  *to = value.x;
}

template <typename T>
METAL_FUNC void put(device Complex<T> *to, Complex<T> value) {
  *to = value;
}

template <typename T, typename From>
METAL_FUNC Complex<T> read(device const From *values, thread const Reach &reach, uint row,
                           uint element) {
  uint index = index_of(reach, row, element);
  const bool is_mirrored = index > reach.mirror / 2 && reach.mirror != 0;
  index = is_mirrored ? reach.mirror - index : index;
  if (index >= reach.count) {
    return Complex<T>(0);
  }
  Complex<T> value = complex_of<T>(values[address_of(reach, row, index)]);
  value.y = is_mirrored ? -value.y : value.y;
  return reach.is_exchanged ? value.yx : value;
}

// Twiddle factors after the stages: a coarse rotation times a fine one.
template <typename T>
METAL_FUNC Complex<T> twiddled(Complex<T> value, constant Pass &given,
                             device const Complex<T> *twiddles, uint row, uint element) {
  if (given.around == 0) {
    return value;
  }
  const uint by = given.is_chirp ? uint(ulong(row) * row % given.around) : row * element;
  const Complex<T> coarse = twiddles[given.coarse + (by >> given.fine_bits)];
  const Complex<T> fine = twiddles[given.fine + (by & ((1u << given.fine_bits) - 1))];
  return product<T>(value, product<T>(coarse, fine));
}

// Transforms of a few numbers, in place. `twiddles` holds one turn in `length` steps.
template <typename T, uint radix>
METAL_FUNC void transform_few(thread Complex<T> *a, device const Complex<T> *twiddles,
                              uint length) {
  Complex<T> sums[radix / 2 + 1], differences[radix / 2 + 1];
  const Complex<T> first = a[0];
  Complex<T> total = first;
  #pragma clang loop unroll(full)
  for (uint k = 1; k <= radix / 2; ++k) {
    sums[k] = a[k] + a[radix - k];
    differences[k] = a[k] - a[radix - k];
    total += sums[k];
  }
  a[0] = total;
  #pragma clang loop unroll(full)
  for (uint q = 1; q <= radix / 2; ++q) {
    Complex<T> even = first, odd = Complex<T>(0);
    #pragma clang loop unroll(full)
    for (uint k = 1; k <= radix / 2; ++k) {
      const Complex<T> twiddle = twiddles[q * k % radix * (length / radix)];
      even += twiddle.x * sums[k];
      odd -= twiddle.y * differences[k];
    }
    a[q] = even + quarter<T>(odd);
    a[radix - q] = even - quarter<T>(odd);
  }
}

template <typename T>
METAL_FUNC void transform_2(thread Complex<T> &a, thread Complex<T> &b) {
  const Complex<T> sum = a + b;
  b = a - b;
  a = sum;
}

template <typename T>
METAL_FUNC void transform_4(thread Complex<T> &a, thread Complex<T> &b, thread Complex<T> &c,
                            thread Complex<T> &d) {
  transform_2<T>(a, c);
  transform_2<T>(b, d);
  d = quarter<T>(d);
  transform_2<T>(a, b);
  transform_2<T>(c, d);
  const Complex<T> second = c;
  c = b;
  b = second;
}

template <typename T, uint radix>
METAL_FUNC void transform(thread Complex<T> *a, device const Complex<T> *twiddles, uint length) {
  if constexpr (radix == 2) {
    transform_2<T>(a[0], a[1]);
  } else if constexpr (radix == 4) {
    transform_4<T>(a[0], a[1], a[2], a[3]);
  } else if constexpr (radix == 8) {
    transform_4<T>(a[0], a[2], a[4], a[6]);
    transform_4<T>(a[1], a[3], a[5], a[7]);
    const T diagonal = twiddles[length / 8].x;
    a[3] = (a[3] + quarter<T>(a[3])) * diagonal;
    a[5] = quarter<T>(a[5]);
    a[7] = (quarter<T>(a[7]) - a[7]) * diagonal;
    #pragma clang loop unroll(full)
    for (uint k = 0; k < 8; k += 2) {
      transform_2<T>(a[k], a[k + 1]);
    }
    const Complex<T> old[8] = {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]};
    #pragma clang loop unroll(full)
    for (uint k = 0; k < 8; ++k) {
      a[k] = old[k % 4 * 2 + k / 4];
    }
  } else {
    transform_few<T, radix>(a, twiddles, length);
  }
}

// One stage: transforms of `radix` elements each, which lie a part of the row apart.
template <typename T, uint radix>
METAL_FUNC void stage(threadgroup Complex<T> *tile, constant Plan &plan,
                      device const Complex<T> *twiddles, uint number, uint own) {
  constexpr uint max_transforms = (each<T> + radix - 1) / radix;  // transforms of a thread
  const bool by_rows = plan.tile_row == 1;
  const Divisor of_done = plan.done[number], of_many = plan.many[number];
  const Divisor divisor = by_rows ? plan.of_across : of_many;
  const uint done = of_done.by, many = of_many.by, count = many * plan.across;
  device const Complex<T> *own_twiddles = twiddles + plan.twiddles[number];
  Complex<T> a[max_transforms][radix];
  #pragma clang loop unroll(full)
  for (uint t = 0; t < max_transforms; ++t) {
    const uint k = own + t * threads;
    const uint outer = quotient(k, divisor), inner = k - outer * divisor.by;
    const uint row = by_rows ? inner : outer, which = by_rows ? outer : inner;
    #pragma clang loop unroll(full)
    for (uint q = 0; q < radix; ++q) {
      a[t][q] = tile[tile_index<T>(plan, row, which + q * many)];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  #pragma clang loop unroll(full)
  for (uint t = 0; t < max_transforms; ++t) {
    const uint k = own + t * threads;
    const uint outer = quotient(k, divisor), inner = k - outer * divisor.by;
    const uint row = by_rows ? inner : outer, which = by_rows ? outer : inner;
    const uint within = which - quotient(which, of_done) * done;
    const uint first = (which - within) * radix + within;
    if (k < count) {
      if (done > 1) {
        #pragma clang loop unroll(full)
        for (uint q = 1; q < radix; ++q) {
          a[t][q] = product<T>(a[t][q], own_twiddles[(q - 1) * done + within]);
        }
      }
      transform<T, radix>(a[t], twiddles, plan.length);
      #pragma clang loop unroll(full)
      for (uint q = 0; q < radix; ++q) {
        tile[tile_index<T>(plan, row, first + q * done)] = a[t][q];
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Stages that want more registers than the others, which kernels without them need not pay for.
template <typename T, bool has_them>
METAL_FUNC void rare_stage(threadgroup Complex<T> *tile, constant Plan &plan,
                           device const Complex<T> *twiddles, uint number, uint own) {
  if constexpr (has_them) {
    switch (plan.radices[number]) {
      case 7: stage<T, 7>(tile, plan, twiddles, number, own); break;
      case 11: stage<T, 11>(tile, plan, twiddles, number, own); break;
      default: stage<T, 13>(tile, plan, twiddles, number, own); break;
    }
  }
}

// The rows of a threadgroup, in one pass.
template <typename T, bool has_rare, typename From, typename To>
METAL_FUNC void transform_tile(device const From *values, device To *results,
                               device const Complex<T> *twiddles, constant Pass &given, T scale,
                               threadgroup Complex<T> *tile, uint3 group, uint own) {
  constant Plan &plan = given.plan;
  const uint first = group.x * plan.across, elements = plan.across * plan.length;
  const Reach from = reach_of(given.from, group.z, group.y);
  // All of a thread's are asked for before the first is needed.
  vec<T, 2> held[each<T>];
  #pragma clang loop unroll(full)
  for (uint e = 0; e < each<T>; ++e) {
    const uint number = own + e * threads;
    const uint2 at = row_and_element(plan, from.by_rows, number);
    const bool is_there = number < elements && first + at.x < given.rows;
    held[e] = vec<T, 2>(0);
    if (is_there) {
      held[e] = read<T>(values, from, first + at.x, at.y);
    }
  }
  #pragma clang loop unroll(full)
  for (uint e = 0; e < each<T>; ++e) {
    const uint number = own + e * threads;
    const uint2 at = row_and_element(plan, from.by_rows, number);
    if (number < elements) {
      tile[tile_index<T>(plan, at.x, at.y)] = held[e];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < plan.stages; ++k) {
    switch (plan.radices[k]) {
      case 2: stage<T, 2>(tile, plan, twiddles, k, own); break;
      case 3: stage<T, 3>(tile, plan, twiddles, k, own); break;
      case 4: stage<T, 4>(tile, plan, twiddles, k, own); break;
      case 5: stage<T, 5>(tile, plan, twiddles, k, own); break;
      case 8: stage<T, 8>(tile, plan, twiddles, k, own); break;
      default: rare_stage<T, has_rare>(tile, plan, twiddles, k, own); break;
    }
  }
  const Reach to = reach_of(given.to, group.z, group.y);
  #pragma clang loop unroll(full)
  for (uint e = 0; e < each<T>; ++e) {
    const uint number = own + e * threads;
    const uint2 at = row_and_element(plan, to.by_rows, number);
    const uint row = first + at.x, index = index_of(to, row, at.y);
    if (number < elements && row < given.rows && index < to.count) {
      vec<T, 2> value = tile[tile_index<T>(plan, at.x, at.y)];
      value = scale * twiddled<T>(value, given, twiddles, row, at.y);
      const long element = address_of(to, row, index);
      put<T>(results + element, to.is_exchanged ? value.yx : value);
    }
  }
}

}  // namespace fourier
