/* Intervals of integers, and the operations on them of compiler/bounds/range_program.py.
 *
 * An interval of w-bit integers stands for its numbers modulo 2^w; low > high if there are none. All
 * that is not known is `full`.
 */
#ifndef METALLOID_CPU_INTERVALS_H
#define METALLOID_CPU_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

enum op {
    FULL, CONSTANT, VARIABLE, ARGUMENT, ADD, SUB, MUL, UDIV, UREM, LSHR, SHL, AND, OR, XOR, SDIV,
    SREM, ASHR, ZEXT, SEXT, TRUNC, UMIN, UMAX, SMIN, SMAX, UNION, ULT, ULE, UGT, UGE, SLT, SLE, SGT,
    SGE, EQ, NE, UP_TO, UP_TO_EQUAL, DOWN_TO, DOWN_TO_EQUAL, SPAN, UP_TO_BY,
    NARROW
};

typedef struct interval {
    int64_t low, high;
} interval;

static const interval empty = {1, 0};

static bool is_empty(interval a) { return a.low > a.high; }

static int64_t largest(unsigned width) {
    return width >= 63 ? INT64_MAX : (int64_t)(((uint64_t)1 << width) - 1);
}

static interval full(unsigned width) {
    return width >= 64 ? (interval){INT64_MIN, INT64_MAX} : (interval){0, largest(width)};
}

/* `high - low`, where it fits. */
static bool extent(interval a, int64_t *result) {
    return !__builtin_sub_overflow(a.high, a.low, result);
}

static interval moved(interval a, int64_t by, unsigned width) {
    interval b;
    if (__builtin_add_overflow(a.low, by, &b.low) || __builtin_add_overflow(a.high, by, &b.high)) {
        return full(width);
    }
    return b;
}

/* The same numbers between `low` and `low + 2^width - 1`, where that is one interval. */
static interval reduced(interval a, int64_t low, unsigned width) {
    if (width >= 64 || is_empty(a)) return a;
    int64_t size = (int64_t)1 << width, high = low + (size - 1), from_low, extent_of;
    if (a.low >= low && a.high <= high) return a;
    interval all = {low, high};
    if (!extent(a, &extent_of) || extent_of >= size) return all;
    if (__builtin_sub_overflow(a.low, low, &from_low)) return all;
    int64_t turns = from_low >> width; /* rounds down */
    int64_t back;
    if (__builtin_mul_overflow(-turns, size, &back)) return all;
    interval b = moved(a, back, width);
    return b.low >= low && b.high <= high ? b : all;
}

static interval as_unsigned(interval a, unsigned width) { return reduced(a, 0, width); }

static interval as_signed(interval a, unsigned width) {
    return width >= 64 ? a : reduced(a, -((int64_t)1 << (width - 1)), width);
}

/* An interval that may be as long as all numbers. */
static interval bounded(interval a, unsigned width) {
    int64_t size;
    if (width >= 64) return a;
    return extent(a, &size) && size <= largest(width) ? a : full(width);
}

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

static interval add(interval a, interval b, unsigned width) {
    interval sum;
    if (__builtin_add_overflow(a.low, b.low, &sum.low) ||
        __builtin_add_overflow(a.high, b.high, &sum.high)) {
        return full(width);
    }
    return bounded(sum, width);
}

static interval subtract(interval a, interval b, unsigned width) {
    interval difference;
    if (__builtin_sub_overflow(a.low, b.high, &difference.low) ||
        __builtin_sub_overflow(a.high, b.low, &difference.high)) {
        return full(width);
    }
    return bounded(difference, width);
}

static interval multiply(interval a, interval b, unsigned width) {
    int64_t products[4];
    if (__builtin_mul_overflow(a.low, b.low, &products[0]) ||
        __builtin_mul_overflow(a.low, b.high, &products[1]) ||
        __builtin_mul_overflow(a.high, b.low, &products[2]) ||
        __builtin_mul_overflow(a.high, b.high, &products[3])) {
        return full(width);
    }
    interval product = {products[0], products[0]};
    for (int i = 1; i < 4; i++) {
        product.low = min(product.low, products[i]);
        product.high = max(product.high, products[i]);
    }
    return bounded(product, width);
}

/* All bits up to the highest of a number. */
static int64_t ones(int64_t number) {
    return number <= 0 ? 0 : (int64_t)(UINT64_MAX >> __builtin_clzll((uint64_t)number));
}

static bool is_single(interval a) { return a.low == a.high; }

/* Of numbers that are not negative, by numbers that are not all 0. */
static interval remainder_of(interval a, interval b) {
    if (a.high < b.low) return a;
    if (is_single(b) && a.low / b.low == a.high / b.low) {
        return (interval){a.low % b.low, a.high % b.low};
    }
    return (interval){0, min(a.high, b.high - 1)};
}

/* Operations on numbers that are not negative; of 64 bits these are all that is known. */
static interval of_unsigned(enum op op, interval a, interval b, unsigned width) {
    a = as_unsigned(a, width), b = as_unsigned(b, width);
    bool a_known = a.low >= 0, b_known = b.low >= 0;
    switch (op) {
        case AND:
            if (a_known && is_single(b)) {
                uint64_t mask = (uint64_t)b.low, cleared = ~mask & (uint64_t)largest(width);
                /* What keeps all bits, or all but the lowest, is monotonous. */
                if (b.low >= 0 && (mask & (mask + 1)) == 0 && a.high <= b.low) return a;
                if ((cleared & (cleared + 1)) == 0) {
                    return (interval){a.low & b.low, a.high & b.low};
                }
            }
            if (a_known && b_known) return (interval){0, min(a.high, b.high)};
            if (a_known) return (interval){0, a.high};
            return b_known ? (interval){0, b.high} : full(width);
        case UMIN:
            if (a_known && b_known) return (interval){min(a.low, b.low), min(a.high, b.high)};
            if (!a_known && !b_known) return full(width);
            return (interval){0, a_known ? a.high : b.high};
        case ULT:
        case ULE:
            if (!b_known) return a;
            if (op == ULT && b.high == 0) return empty;
            return (interval){max(a.low, 0), min(a.high, b.high - (op == ULT))};
        case LSHR:
            if (!a_known && is_single(b) && b.low > 0 && b.low < 64) {
                return (interval){0, (int64_t)(UINT64_MAX >> b.low)};
            }
            break;
        case UREM:
            if (!a_known && b_known && b.high > 0) return (interval){0, b.high - 1};
            break;
        default: break;
    }
    if (!a_known) return op == UGT || op == UGE ? a : full(width);
    if (!b_known) return op == UGT || op == UGE ? a : full(width);
    switch (op) {
        case UDIV:
            if (b.high == 0) return full(width);
            return (interval){a.low / b.high, a.high / max(b.low, 1)};
        case UREM:
            if (b.high == 0) return full(width);
            return remainder_of(a, b);
        case LSHR:
            if (b.high >= (int64_t)width || b.high >= 64) return (interval){0, a.high};
            return (interval){a.low >> b.high, a.high >> b.low};
        case SHL:
            if (b.high >= (int64_t)width || b.high >= 63) return full(width);
            return multiply(a, (interval){(int64_t)1 << b.low, (int64_t)1 << b.high}, width);
        case OR:
        case XOR: {
            int64_t sum, bits = ones(a.high | b.high);
            if (!__builtin_add_overflow(a.high, b.high, &sum)) bits = min(bits, sum);
            return (interval){op == OR ? max(a.low, b.low) : 0, bits};
        }
        case UMAX: return (interval){max(a.low, b.low), max(a.high, b.high)};
        case UGE: return (interval){max(a.low, b.low), a.high};
        case UGT: return b.low == INT64_MAX ? empty : (interval){max(a.low, b.low + 1), a.high};
        default: return full(width);
    }
}

static interval of_signed(enum op op, interval a, interval b, unsigned width) {
    a = as_signed(a, width);
    if (op == ASHR) {
        b = as_unsigned(b, width);
        if (!is_single(b) || b.low < 0 || b.low >= (int64_t)width) return full(width);
        return (interval){a.low >> b.low, a.high >> b.low};
    }
    b = as_signed(b, width);
    switch (op) {
        case SDIV:
            if (!is_single(b) || b.low <= 0) return full(width);
            return (interval){a.low / b.low, a.high / b.low};
        case SREM:
            if (b.low <= 0) return full(width);
            if (a.low < 0) return (interval){-(b.high - 1), b.high - 1};
            return remainder_of(a, b);
        case SMIN: return (interval){min(a.low, b.low), min(a.high, b.high)};
        case SMAX: return (interval){max(a.low, b.low), max(a.high, b.high)};
        case SLT: return b.high == INT64_MIN ? empty : (interval){a.low, min(a.high, b.high - 1)};
        case SLE: return (interval){a.low, min(a.high, b.high)};
        case SGT: return b.low == INT64_MAX ? empty : (interval){max(a.low, b.low + 1), a.high};
        case SGE: return (interval){max(a.low, b.low), a.high};
        default: return full(width);
    }
}

static interval unequal(interval a, interval b, unsigned width) {
    a = as_unsigned(a, width), b = as_unsigned(b, width);
    if (!is_single(b)) return a;
    if (a.low == b.low) return is_single(a) ? empty : (interval){a.low + 1, a.high};
    return a.high == b.low ? (interval){a.low, a.high - 1} : a;
}

static interval equal(interval a, interval b, unsigned width) {
    a = as_unsigned(a, width), b = as_unsigned(b, width);
    return (interval){max(a.low, b.low), min(a.high, b.high)};
}

/* What a variable of a loop is: it begins in `a`, and goes by one of `sizes` while it is before `b`. */
static interval counted(enum op op, interval a, interval b, interval sizes, bool is_signed,
                        unsigned width) {
    int64_t size = sizes.high;
    int64_t least = 0, greatest = largest(width), next;
    if (is_signed) {
        greatest = width >= 64 ? INT64_MAX : largest(width) >> 1;
        least = -greatest - 1;
    }
    if (op == UP_TO || op == DOWN_TO) {
        a = is_signed ? as_signed(a, width) : as_unsigned(a, width);
        if (a.low < least || a.high > greatest || b.low < least || b.high > greatest) return full(width);
        if (op == UP_TO) {
            if (size == 0 && is_signed) return full(width);
            if (__builtin_add_overflow(b.high, size, &next) || next - 1 > greatest) return full(width);
            if (b.high == least) return a;
            if (b.high - 1 <= a.high) { /* unless it wraps to a number before `b` */
                bool wraps = __builtin_add_overflow(a.high, size ? size : a.high, &next) || next > greatest;
                return wraps ? full(width) : a;
            }
            int64_t last = b.high - 1, distance;
            if (size > 1 && is_single(sizes) && is_single(a) && !__builtin_sub_overflow(last, a.low, &distance)) {
                last -= distance % size;
            }
            return (interval){a.low, last};
        }
        if (__builtin_sub_overflow(b.low, size, &next) || next + 1 < least || b.low == INT64_MAX) {
            return full(width);
        }
        if (a.low <= b.low && (__builtin_sub_overflow(a.low, size, &next) || next < least)) {
            return full(width);
        }
        return (interval){min(a.low, b.low + 1), a.high};
    }
    if (width < 64 && (a.low < -(largest(width) >> 1) - 1 || b.high > largest(width))) {
        return full(width);
    }
    bool is_exact = size == 1;
    if (!is_exact && is_single(a) && is_single(b)) {
        int64_t distance;
        is_exact = !__builtin_sub_overflow(b.low, a.low, &distance) && distance % size == 0;
    }
    if (op == UP_TO_EQUAL) {
        return is_exact && a.high < b.low ? (interval){a.low, b.high - size} : full(width);
    }
    return is_exact && a.low > b.high ? (interval){b.low + size, a.high} : full(width);
}

#endif
