#include <metal_stdlib>
using namespace metal;

// Numbers of 256 bits modulo the prime of secp256k1, in Montgomery's form, and points of its curve.

template <uint LIMBS>
struct Wide {
    uint v[LIMBS];
};
using Number = Wide<8>;

constant uint PRIME[8] = {0xfffffc2f, 0xfffffffe, 0xffffffff, 0xffffffff,
                          0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff};
constant uint MINUS_INVERSE = 0xd2253531;  // of the prime, modulo 2^32

template <uint LIMBS>
Wide<LIMBS> add_wide(Wide<LIMBS> a, Wide<LIMBS> b, thread uint& carry) {
    Wide<LIMBS> sum;
    carry = 0;
    #pragma unroll
    for (uint i = 0; i < LIMBS; i++) {
        ulong s = ulong(a.v[i]) + b.v[i] + carry;
        sum.v[i] = uint(s);
        carry = uint(s >> 32);
    }
    return sum;
}

template <uint LIMBS>
Wide<LIMBS> subtract_wide(Wide<LIMBS> a, Wide<LIMBS> b, thread uint& borrow) {
    Wide<LIMBS> difference;
    borrow = 0;
    #pragma unroll
    for (uint i = 0; i < LIMBS; i++) {
        ulong d = ulong(a.v[i]) - b.v[i] - borrow;
        difference.v[i] = uint(d);
        borrow = uint(d >> 32) & 1;
    }
    return difference;
}

Number prime() {
    Number p;
    for (uint i = 0; i < 8; i++) p.v[i] = PRIME[i];
    return p;
}

Number reduced(Number a, uint carry) {
    uint borrow;
    Number less = subtract_wide(a, prime(), borrow);
    return carry != 0 || borrow == 0 ? less : a;
}

Number add(Number a, Number b) {
    uint carry;
    Number sum = add_wide(a, b, carry);
    return reduced(sum, carry);
}

Number subtract(Number a, Number b) {
    uint borrow, carry;
    Number difference = subtract_wide(a, b, borrow);
    return borrow ? add_wide(difference, prime(), carry) : difference;
}

Number multiply(Number a, Number b) {
    uint t[10] = {0};
    #pragma unroll
    for (uint i = 0; i < 8; i++) {
        ulong c = 0;
        #pragma unroll
        for (uint j = 0; j < 8; j++) {
            c += ulong(t[j]) + ulong(a.v[i]) * b.v[j];
            t[j] = uint(c);
            c >>= 32;
        }
        c += t[8];
        t[8] = uint(c);
        t[9] = uint(c >> 32);
        uint m = t[0] * MINUS_INVERSE;
        c = (ulong(t[0]) + ulong(m) * PRIME[0]) >> 32;
        #pragma unroll
        for (uint j = 1; j < 8; j++) {
            c += ulong(t[j]) + ulong(m) * PRIME[j];
            t[j - 1] = uint(c);
            c >>= 32;
        }
        c += t[8];
        t[7] = uint(c);
        t[8] = t[9] + uint(c >> 32);
    }
    Number product;
    for (uint i = 0; i < 8; i++) product.v[i] = t[i];
    return reduced(product, t[8]);
}

bool is_zero(Number a) {
    for (uint i = 0; i < 8; i++)
        if (a.v[i] != 0) return false;
    return true;
}

struct Point {
    Number x, y, z;
};

Point doubled(Point p) {
    Number a = multiply(p.x, p.x), b = multiply(p.y, p.y), c = multiply(b, b);
    Number s = add(p.x, b);
    Number d = subtract(subtract(multiply(s, s), a), c);
    d = add(d, d);
    Number e = add(add(a, a), a), f = multiply(e, e);
    Point q;
    q.x = subtract(f, add(d, d));
    Number c8 = add(c, c);
    c8 = add(c8, c8);
    c8 = add(c8, c8);
    q.y = subtract(multiply(e, subtract(d, q.x)), c8);
    q.z = multiply(p.y, p.z);
    q.z = add(q.z, q.z);
    return q;
}

Point sum(Point p, Point q) {
    if (is_zero(p.z)) return q;
    if (is_zero(q.z)) return p;
    Number z1 = multiply(p.z, p.z), z2 = multiply(q.z, q.z);
    Number u1 = multiply(p.x, z2), u2 = multiply(q.x, z1);
    Number s1 = multiply(multiply(p.y, q.z), z2), s2 = multiply(multiply(q.y, p.z), z1);
    Number h = subtract(u2, u1), r = subtract(s2, s1);
    if (is_zero(h) && is_zero(r)) return doubled(p);
    r = add(r, r);
    Number i = add(h, h);
    i = multiply(i, i);
    Number j = multiply(h, i), v = multiply(u1, i);
    Point result;
    result.x = subtract(subtract(multiply(r, r), j), add(v, v));
    Number s1j = multiply(s1, j);
    result.y = subtract(multiply(r, subtract(v, result.x)), add(s1j, s1j));
    result.z = add(p.z, q.z);
    result.z = multiply(result.z, result.z);
    result.z = multiply(subtract(subtract(result.z, z1), z2), h);
    return result;
}

// A scalar times a point, and another point added: lanes go by their own bits.
kernel void combine(device const Point* points [[buffer(0)]], device const uint* scalars [[buffer(1)]],
                    device Point* results [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    Point total = sum(points[2 * i], points[2 * i + 1]), power = points[2 * i];
    for (uint bits = scalars[i]; bits != 0; bits >>= 1) {
        if (bits & 1) total = sum(total, power);
        power = doubled(power);
    }
    results[i] = sum(total, power);
}

// The sum of a threadgroup's points, by a tree of barriers.
kernel void add_up(device const Point* points [[buffer(0)]], device Point* results [[buffer(1)]],
                   uint i [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
    threadgroup Point parts[64];
    parts[i] = points[64 * g + i];
    for (uint step = 32; step > 0; step /= 2) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (i < step) parts[i] = sum(parts[i], parts[i + step]);
    }
    if (i == 0) results[g] = parts[0];
}
