// Fourier transforms of many rows, by the algorithm of Stockham (D. Bailey, "FFTs in external or
// hierarchical memory", 1990): a threadgroup holds some rows, and every stage reads one half of its
// memory and writes the other, in the order in which the next one wants it.
//
// What is longer than a threadgroup's memory takes several passes: a row of a * b elements is
// transformed along its columns, turned by factors, and then along its rows. What has large prime
// factors is a convolution with a chirp (L. Bluestein, 1970).
//
// An inverse transform is a transform with real and imaginary parts exchanged, before and after.
namespace fourier {

constexpr constant uint threads = 256;
constexpr constant uint bytes = 16384;  // of half the memory of a threadgroup

// A number to divide by, and 2^32 divided by it, rounded up. Exact for what a threadgroup counts.
struct Divisor {
  uint by, factor;
};

METAL_FUNC uint quotient(uint number, Divisor divisor) {
  return divisor.by == 1 ? number : mulhi(number, divisor.factor);
}

// Memory on one side of a pass. An element is found by its transform (in three axes) and its index
// in that, which depends on its place in this pass and the row.
struct Side {
  long start, batch, middle, row;           // in memory
  long step;                                // of the index, in memory
  uint index_row, index_middle, index_place;
  uint count;      // elements of a transform there are: others are 0, or not written
  uint mirror;     // length of a transform with Hermitian symmetry, of which there is half; or 0
  uint by_rows;    // whether neighbours are of different rows
  uint exchanged;  // whether real and imaginary parts change places
};

struct Pass {
  Side from, to;
  uint rows, length;
  uint across;                  // rows of a threadgroup
  uint tile_row, tile_place;    // steps in its memory
  uint around;                  // factors behind the stages turn once in so many steps; 0: none
  uint coarse, fine, fine_bits; // where their tables begin, and bits of the second one's index
  uint is_chirp;                // whether they turn with the square of the row
  uint stages;
  Divisor of_across, of_length;
  uint radices[12];
  Divisor done[12], many[12];   // for each stage: numbers already transformed, and all transforms
};

// A number of a threadgroup's: of which row, and which place in that.
METAL_FUNC uint2 row_and_place(constant Pass &given, bool by_rows, uint number) {
  const Divisor divisor = by_rows ? given.of_across : given.of_length;
  const uint behind = quotient(number, divisor), within = number - behind * divisor.by;
  return by_rows ? uint2(within, behind) : uint2(behind, within);
}

template <typename T>
using Complex = vec<T, 2>;

template <typename T>
METAL_FUNC Complex<T> product(Complex<T> a, Complex<T> b) {
  return Complex<T>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// -i a, a quarter of a turn.
template <typename T>
METAL_FUNC Complex<T> quarter(Complex<T> a) {
  return Complex<T>(a.y, -a.x);
}

METAL_FUNC uint index_of(constant Side &side, uint middle, uint row, uint place) {
  return side.index_middle * middle + side.index_row * row + side.index_place * place;
}

METAL_FUNC long address_of(constant Side &side, uint batch, uint middle, uint row, uint index) {
  return side.start + side.batch * batch + side.middle * middle + side.row * row +
         side.step * index;
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
METAL_FUNC Complex<T> read(device const From *values, constant Side &side, uint batch, uint middle,
                           uint row, uint place) {
  uint index = index_of(side, middle, row, place);
  const bool is_mirrored = index > side.mirror / 2 && side.mirror != 0;
  index = is_mirrored ? side.mirror - index : index;
  if (index >= side.count) {
    return Complex<T>(0);
  }
  Complex<T> value = complex_of<T>(values[address_of(side, batch, middle, row, index)]);
  value.y = is_mirrored ? -value.y : value.y;
  return side.exchanged ? value.yx : value;
}

// The factors behind the stages: a coarse turn and a fine one.
template <typename T>
METAL_FUNC Complex<T> turned(Complex<T> value, constant Pass &given,
                             device const Complex<T> *turns, uint row, uint place) {
  if (given.around == 0) {
    return value;
  }
  const uint by = given.is_chirp ? uint(ulong(row) * row % given.around) : row * place;
  const Complex<T> coarse = turns[given.coarse + (by >> given.fine_bits)];
  const Complex<T> fine = turns[given.fine + (by & ((1u << given.fine_bits) - 1))];
  return product<T>(value, product<T>(coarse, fine));
}

// Transforms of a few numbers, in place. `turns` holds one turn in `length` steps.
template <typename T, uint radix>
METAL_FUNC void transform_few(thread Complex<T> *a, device const Complex<T> *turns, uint length) {
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
      const Complex<T> turn = turns[q * k % radix * (length / radix)];
      even += turn.x * sums[k];
      odd -= turn.y * differences[k];
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
METAL_FUNC void transform(thread Complex<T> *a, device const Complex<T> *turns, uint length) {
  if constexpr (radix == 2) {
    transform_2<T>(a[0], a[1]);
  } else if constexpr (radix == 4) {
    transform_4<T>(a[0], a[1], a[2], a[3]);
  } else if constexpr (radix == 8) {
    transform_4<T>(a[0], a[2], a[4], a[6]);
    transform_4<T>(a[1], a[3], a[5], a[7]);
    const T diagonal = turns[length / 8].x;
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
    transform_few<T, radix>(a, turns, length);
  }
}

// One stage: transforms of `radix` elements each, which lie a part of the row apart.
template <typename T, uint radix>
METAL_FUNC void stage(threadgroup const Complex<T> *from, threadgroup Complex<T> *to,
                      constant Pass &given, device const Complex<T> *turns, uint number, uint own) {
  const bool by_rows = given.tile_row == 1;
  const Divisor of_done = given.done[number], of_many = given.many[number];
  const Divisor divisor = by_rows ? given.of_across : of_many;
  const uint done = of_done.by, many = of_many.by, step = quotient(many, of_done);
  for (uint k = own; k < many * given.across; k += threads) {
    const uint behind = quotient(k, divisor), beside = k - behind * divisor.by;
    const uint row = by_rows ? beside : behind, which = by_rows ? behind : beside;
    const uint within = which - quotient(which, of_done) * done;
    Complex<T> a[radix];
    #pragma clang loop unroll(full)
    for (uint q = 0; q < radix; ++q) {
      a[q] = from[row * given.tile_row + (which + q * many) * given.tile_place];
      if (q > 0 && done > 1) {
        a[q] = product<T>(a[q], turns[q * within * step]);
      }
    }
    transform<T, radix>(a, turns, given.length);
    const uint first = (which - within) * radix + within;
    #pragma clang loop unroll(full)
    for (uint q = 0; q < radix; ++q) {
      to[row * given.tile_row + (first + q * done) * given.tile_place] = a[q];
    }
  }
}

}  // namespace fourier

template <typename T, typename From, typename To>
[[kernel]] void transform_rows(device const From *values, device To *results,
                               device const vec<T, 2> *turns, constant fourier::Pass &given,
                               constant T &scale, uint3 group [[threadgroup_position_in_grid]],
                               uint own [[thread_index_in_threadgroup]]) {
  constexpr uint room = fourier::bytes / sizeof(vec<T, 2>);
  threadgroup vec<T, 2> tiles[2 * room];
  threadgroup vec<T, 2> *now = tiles, *next = tiles + room;
  const uint first = group.x * given.across, elements = given.across * given.length;
  // All of a thread's are asked for before the first is needed.
  constexpr uint each = room / fourier::threads;
  vec<T, 2> held[each];
  #pragma clang loop unroll(full)
  for (uint e = 0; e < each; ++e) {
    const uint number = own + e * fourier::threads;
    const uint2 at = fourier::row_and_place(given, given.from.by_rows, number);
    const bool is_there = number < elements && first + at.x < given.rows;
    held[e] = vec<T, 2>(0);
    if (is_there) {
      held[e] = fourier::read<T>(values, given.from, group.z, group.y, first + at.x, at.y);
    }
  }
  #pragma clang loop unroll(full)
  for (uint e = 0; e < each; ++e) {
    const uint number = own + e * fourier::threads;
    const uint2 at = fourier::row_and_place(given, given.from.by_rows, number);
    if (number < elements) {
      now[at.x * given.tile_row + at.y * given.tile_place] = held[e];
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < given.stages; ++k) {
    switch (given.radices[k]) {
      case 2: fourier::stage<T, 2>(now, next, given, turns, k, own); break;
      case 3: fourier::stage<T, 3>(now, next, given, turns, k, own); break;
      case 4: fourier::stage<T, 4>(now, next, given, turns, k, own); break;
      case 5: fourier::stage<T, 5>(now, next, given, turns, k, own); break;
      case 7: fourier::stage<T, 7>(now, next, given, turns, k, own); break;
      case 8: fourier::stage<T, 8>(now, next, given, turns, k, own); break;
      case 11: fourier::stage<T, 11>(now, next, given, turns, k, own); break;
      default: fourier::stage<T, 13>(now, next, given, turns, k, own); break;
    }
    threadgroup vec<T, 2> *other = now;
    now = next;
    next = other;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  #pragma clang loop unroll_count(4)
  for (uint k = own; k < elements; k += fourier::threads) {
    const uint2 at = fourier::row_and_place(given, given.to.by_rows, k);
    const uint row = first + at.x, index = fourier::index_of(given.to, group.y, row, at.y);
    if (row < given.rows && index < given.to.count) {
      vec<T, 2> value = now[at.x * given.tile_row + at.y * given.tile_place];
      value = scale * fourier::turned<T>(value, given, turns, row, at.y);
      const long place = fourier::address_of(given.to, group.z, group.y, row, index);
      fourier::put<T>(results + place, given.to.exchanged ? value.yx : value);
    }
  }
}

// Each row times the same numbers, in place.
template <typename T>
[[kernel]] void multiply_rows(device vec<T, 2> *values, device const vec<T, 2> *by,
                              constant uint &length, uint2 place [[thread_position_in_grid]]) {
  const ulong at = ulong(place.y) * length + place.x;
  values[at] = fourier::product<T>(values[at], by[place.x]);
}
