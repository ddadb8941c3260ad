/* Whether the accesses of a launch stay within their objects, from the ranges of their offsets.
 * The program of ranges comes from compiler/bounds/value_ranges.py.
 */
#include <string.h>

#include "intervals.h"
#include "runtime.h"

enum { POSITION = 0, GRID_POSITION = 3, INDEX = 6, GROUP = 7, GROUP_SIZE = 10, DISPATCHED = 13,
       GRID = 16, GROUPS = 19, VARIABLES = 22 };

typedef struct mtl_range_node {
    int64_t op; /* and the width, from bit 8 on */
    int64_t a, b, c;
} mtl_range_node;

/* Accesses from first to end, in bytes, from the offset that a node is the range of. */
typedef struct mtl_range_check {
    int64_t node; /* -1 = the offset is 0, -2 = unknown */
    int64_t word; /* of the object, or -1 */
    int64_t bytes;
    int64_t first, end;
    int64_t is_checked; /* by the code */
} mtl_range_check;

/* A number that the program reads: its bytes at an offset from the memory of a word. */
typedef struct mtl_range_read {
    uint64_t word, offset, bytes;
} mtl_range_read;

enum { SETS = 16, LINES = 4, MAX_INPUTS = 60, GEOMETRY = 3 /* words of grid and threadgroup sizes */ };

/* Launches that were proven, by all that the proof depends on: equal launches are proven as well. A
 * cache of sets, each with the latest first. */
typedef struct mtl_proven {
    atomic_flag is_locked;
    uint64_t inputs[SETS][LINES][MAX_INPUTS];
} mtl_proven;

typedef struct mtl_ranges {
    uint64_t node_count, check_count, word_count, read_count;
    const mtl_range_node *nodes;
    const mtl_range_check *checks;
    const mtl_range_read *reads;
    mtl_proven *proven;
} mtl_ranges;

static void set_variables(interval *values, const mtl_descriptor *launch) {
    uint64_t threads = 1;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t grid = launch->grid[axis], group = launch->group[axis];
        int64_t size = grid < group ? grid : group;
        int64_t rest = group ? grid % group : 0, groups = group ? grid / group + (rest != 0) : 0;
        threads *= (uint64_t)size;
        values[POSITION + axis] = (interval){0, size - 1};
        values[GRID_POSITION + axis] = (interval){0, (int64_t)grid - 1};
        values[GROUP + axis] = (interval){0, groups - 1};
        values[GROUP_SIZE + axis] = (interval){rest ? rest : size, size};
        values[DISPATCHED + axis] = (interval){group, group};
        values[GRID + axis] = (interval){grid, grid};
        values[GROUPS + axis] = (interval){groups, groups};
    }
    values[INDEX] = (interval){0, (int64_t)threads - 1};
}

/* A number that an argument points to. False if that is not known to be readable. */
static bool read_argument(const mtl_ranges *ranges, const mtl_descriptor *launch,
                          const mtl_range_read *read, uint64_t *number) {
    uint64_t address = launch->arguments[read->word];
    uint64_t known = launch->arguments[ranges->word_count + read->word];
    *number = 0;
    if (!address || known < read->bytes || read->offset > known - read->bytes) return false;
    memcpy(number, (const char *)(uintptr_t)address + read->offset, read->bytes);
    return true;
}

static interval argument(const mtl_ranges *ranges, const mtl_descriptor *launch,
                         const mtl_range_node *n, unsigned width) {
    const mtl_range_read read = {(uint64_t)n->a, (uint64_t)n->b, width / 8};
    uint64_t number;
    if (!read_argument(ranges, launch, &read, &number)) return full(width);
    return (interval){(int64_t)number, (int64_t)number};
}

static interval compared(enum op op, interval a, interval b, unsigned width) {
    if (op == EQ) return equal(a, b, width);
    if (op == NE) return unequal(a, b, width);
    return op >= SLT && op <= SGE ? of_signed(op, a, b, width) : of_unsigned(op, a, b, width);
}

/* `a`, where `a` and a constant have a sum that compares so with `b`. It is `a` if the sum may wrap. */
static interval compared_sum(enum op op, interval a, interval b, int64_t added, unsigned width) {
    bool is_signed = op >= SLT && op <= SGE;
    int64_t greatest = is_signed ? largest(width) >> (width < 64) : largest(width);
    int64_t least = is_signed ? -greatest - 1 : 0;
    interval own = is_signed ? as_signed(a, width) : as_unsigned(a, width);
    interval sum = moved(own, added, 64);
    if (own.low < least || own.high > greatest || sum.low < least || sum.high > greatest) return a;
    interval inside = compared(op, sum, b, width);
    return is_empty(inside) ? empty : moved(inside, -added, width);
}

/* The sum `a` of two extended numbers. Unless it may wrap, the extended narrow sum `b` is equal to it. */
static interval sum_of_narrow(interval a, interval b, bool is_signed, unsigned width) {
    interval same = is_signed ? as_signed(a, width) : as_unsigned(a, width);
    if (same.low != a.low || same.high != a.high) return a;
    return (interval){max(a.low, b.low), min(a.high, b.high)};
}

static interval evaluate(const mtl_ranges *ranges, const mtl_descriptor *launch,
                         const interval *variables, const interval *known, const mtl_range_node *n) {
    enum op op = (enum op)(n->op & 0xff);
    unsigned width = (unsigned)(n->op >> 8);
    switch (op) {
        case FULL: return full(width);
        case CONSTANT: return (interval){n->a, n->a};
        case VARIABLE: return variables[n->a];
        case ARGUMENT: return argument(ranges, launch, n, width);
        default: break;
    }
    interval a = known[n->a];
    if (op == UNION) {
        interval b = known[n->b];
        if (is_empty(a)) return b;
        if (is_empty(b)) return a;
        return bounded((interval){min(a.low, b.low), max(a.high, b.high)}, width);
    }
    if (is_empty(a)) return empty;
    switch (op) {
        case ZEXT: return as_unsigned(a, width);
        case SEXT: return as_signed(a, width);
        case TRUNC: return bounded(a, width);
        case SPAN: {
            int64_t distance;
            if (!extent(a, &distance)) return full(width);
            return (interval){0, distance / n->c};
        }
        default: break;
    }
    interval b = known[n->b];
    if (is_empty(b)) return empty;
    switch (op) {
        case ADD: return add(a, b, width);
        case SUB: return subtract(a, b, width);
        case MUL: return multiply(a, b, width);
        case SDIV: case SREM: case ASHR: case SMIN: case SMAX: return of_signed(op, a, b, width);
        case EQ: case NE: case ULT: case ULE: case UGT: case UGE: case SLT: case SLE: case SGT:
        case SGE:
            if (n->c) return compared_sum(op, a, b, n->c, width);
            return compared(op, a, b, width);
        case UP_TO: case UP_TO_EQUAL: case DOWN_TO: case DOWN_TO_EQUAL:
            return counted(op, a, b, (interval){n->c / 2, n->c / 2}, n->c % 2, width);
        case UP_TO_BY: {
            interval by = known[n->c / 2];
            by = n->c % 2 ? as_signed(by, width) : as_unsigned(by, width);
            return is_empty(by) || by.low < 1 ? full(width) : counted(UP_TO, a, b, by, n->c % 2, width);
        }
        case NARROW: return sum_of_narrow(a, b, n->c, width);
        default: return of_unsigned(op, a, b, width);
    }
}

static bool is_inside(const mtl_ranges *ranges, const mtl_descriptor *launch,
                      const interval *known, const mtl_range_check *check) {
    int64_t bytes = check->bytes, first, end;
    if (check->node == -2) return false;
    if (check->word >= 0) {
        bytes = (int64_t)launch->arguments[ranges->word_count + (uint64_t)check->word];
    }
    interval offset = check->node < 0 ? (interval){0, 0} : known[check->node];
    if (is_empty(offset)) return true;
    return !__builtin_add_overflow(offset.low, check->first, &first) && first >= 0 &&
           !__builtin_add_overflow(offset.high, check->end, &end) && end <= bytes;
}

/* All that the proof of a launch depends on. Returns the number of words; 0 if they are too many. */
static uint64_t inputs_of(const mtl_ranges *ranges, const mtl_descriptor *launch,
                          uint64_t inputs[MAX_INPUTS]) {
    uint64_t words = ranges->word_count, count = GEOMETRY + words + ranges->read_count;
    if (!ranges->proven || count > MAX_INPUTS) return 0;
    _Static_assert(sizeof launch->grid + sizeof launch->group == GEOMETRY * sizeof *inputs, "");
    memcpy(inputs, launch->grid, GEOMETRY * sizeof *inputs);
    memcpy(inputs + GEOMETRY, launch->arguments + words, words * sizeof *inputs);
    for (uint64_t i = 0; i < ranges->read_count; i++) {
        uint64_t *input = &inputs[GEOMETRY + words + i];
        if (!read_argument(ranges, launch, &ranges->reads[i], input)) return 0;
    }
    return count;
}

typedef uint64_t mtl_inputs[MAX_INPUTS];

static mtl_inputs *set_of(const mtl_ranges *ranges, const uint64_t *inputs, uint64_t count) {
    uint64_t hash = 0, factor = 0x9e3779b97f4a7c15u;
    for (uint64_t i = 0; i < count; i++, factor += 0x9e3779b97f4a7c16u) hash += inputs[i] * factor;
    return ranges->proven->inputs[hash >> 60];
}

static bool lock(const mtl_ranges *ranges) {
    return !atomic_flag_test_and_set_explicit(&ranges->proven->is_locked, memory_order_acquire);
}

static void unlock(const mtl_ranges *ranges) {
    atomic_flag_clear_explicit(&ranges->proven->is_locked, memory_order_release);
}

enum { MAX_NODES = 8192 };

static int all_inside(const mtl_ranges *ranges, const mtl_descriptor *launch, uint8_t *outside) {
    interval variables[VARIABLES], known[MAX_NODES];
    if (ranges->node_count > MAX_NODES) return 0;
    set_variables(variables, launch);
    for (uint64_t i = 0; i < ranges->node_count; i++) {
        known[i] = evaluate(ranges, launch, variables, known, &ranges->nodes[i]);
    }
    int all = 1;
    for (uint64_t i = 0; i < ranges->check_count; i++) {
        const mtl_range_check *check = &ranges->checks[i];
        if (check->is_checked && !outside) continue;
        bool inside = is_inside(ranges, launch, known, check);
        if (outside) outside[i] = !inside;
        if (!inside && !check->is_checked) all = 0;
    }
    return all;
}

/* Whether all accesses are inside that the code does not check. Sets `outside`, unless it is NULL, to
 * 1 for those that may not be. */
MTL_EXPORT int mtl_is_inside(const mtl_ranges *ranges, const void *block, uint8_t *outside) {
    uint64_t inputs[MAX_INPUTS], count = outside ? 0 : inputs_of(ranges, block, inputs);
    if (!count) return all_inside(ranges, block, outside);
    mtl_inputs *set = set_of(ranges, inputs, count);
    uint64_t bytes = count * sizeof *inputs;
    if (lock(ranges)) { /* else another thread is here: the proof is quick enough */
        bool is_known = false;
        for (int line = 0; line < LINES && !is_known; line++)
            is_known = memcmp(set[line], inputs, bytes) == 0;
        unlock(ranges);
        if (is_known) return 1;
    }
    if (!all_inside(ranges, block, NULL)) return 0;
    if (lock(ranges)) {
        memmove(set + 1, set, (LINES - 1) * sizeof *set);
        memcpy(set, inputs, bytes);
        unlock(ranges);
    }
    return 1;
}
