// Swizzles: every word of one to four letters out of xyzw, and the same words out of rgba.
//
// A swizzle is a property: reading it calls a getter that builds a real `vec`, so templates deduce
// from it as from any other vector; assigning to it calls a setter. Single letters are plain
// members of the vector. All words get a property; only words without a repeated letter get a
// setter, so that `v.xx = a` ends in clang's "cannot find suitable setter for property 'xx'".
#pragma once

// ---- one word -----------------------------------------------------------------------------------
#define METALLOID_COLOR_x r
#define METALLOID_COLOR_y g
#define METALLOID_COLOR_z b
#define METALLOID_COLOR_w a

#define METALLOID_JOIN2_(a, b) a##b
#define METALLOID_JOIN2(a, b) METALLOID_JOIN2_(a, b)
#define METALLOID_JOIN3_(a, b, c) a##b##c
#define METALLOID_JOIN3(a, b, c) METALLOID_JOIN3_(a, b, c)
#define METALLOID_JOIN4_(a, b, c, d) a##b##c##d
#define METALLOID_JOIN4(a, b, c, d) METALLOID_JOIN4_(a, b, c, d)

#define METALLOID_SWIZZLE2(a, b) \
  METALLOID_INLINE vec<T, 2> get_##a##b() const { return vec<T, 2>(a, b); } \
  __declspec(property(get = get_##a##b, put = put_##a##b)) vec<T, 2> a##b, \
      METALLOID_JOIN2(METALLOID_COLOR_##a, METALLOID_COLOR_##b);

#define METALLOID_SWIZZLE3(a, b, c) \
  METALLOID_INLINE vec<T, 3> get_##a##b##c() const { return vec<T, 3>(a, b, c); } \
  __declspec(property(get = get_##a##b##c, put = put_##a##b##c)) vec<T, 3> a##b##c, \
      METALLOID_JOIN3(METALLOID_COLOR_##a, METALLOID_COLOR_##b, METALLOID_COLOR_##c);

#define METALLOID_SWIZZLE4(a, b, c, d) \
  METALLOID_INLINE vec<T, 4> get_##a##b##c##d() const { return vec<T, 4>(a, b, c, d); } \
  __declspec(property(get = get_##a##b##c##d, put = put_##a##b##c##d)) vec<T, 4> a##b##c##d, \
      METALLOID_JOIN4(METALLOID_COLOR_##a, METALLOID_COLOR_##b, METALLOID_COLOR_##c, \
                      METALLOID_COLOR_##d);

// Setters store component by component: a write to `p->xy` must leave z and w alone, because
// another thread may own them.
#define METALLOID_SETTER2(a, b) \
  METALLOID_INLINE void put_##a##b(vec<T, 2> v) { \
    a = v.x; \
    b = v.y; \
  }

#define METALLOID_SETTER3(a, b, c) \
  METALLOID_INLINE void put_##a##b##c(vec<T, 3> v) { \
    a = v.x; \
    b = v.y; \
    c = v.z; \
  }

#define METALLOID_SETTER4(a, b, c, d) \
  METALLOID_INLINE void put_##a##b##c##d(vec<T, 4> v) { \
    a = v.x; \
    b = v.y; \
    c = v.z; \
    d = v.w; \
  }

// ---- all words over the first N letters ---------------------------------------------------------
// NEXT_N(WORD, prefix...) expands WORD(prefix..., letter) for each letter. The three copies exist
// because the preprocessor does not expand a macro inside its own expansion.
#define METALLOID_NEXT_2(WORD, ...) WORD(__VA_ARGS__, x) WORD(__VA_ARGS__, y)
#define METALLOID_NEXT_3(WORD, ...) METALLOID_NEXT_2(WORD, __VA_ARGS__) WORD(__VA_ARGS__, z)
#define METALLOID_NEXT_4(WORD, ...) METALLOID_NEXT_3(WORD, __VA_ARGS__) WORD(__VA_ARGS__, w)
#define METALLOID_THEN_2(WORD, ...) WORD(__VA_ARGS__, x) WORD(__VA_ARGS__, y)
#define METALLOID_THEN_3(WORD, ...) METALLOID_THEN_2(WORD, __VA_ARGS__) WORD(__VA_ARGS__, z)
#define METALLOID_THEN_4(WORD, ...) METALLOID_THEN_3(WORD, __VA_ARGS__) WORD(__VA_ARGS__, w)
#define METALLOID_LAST_2(WORD, ...) WORD(__VA_ARGS__, x) WORD(__VA_ARGS__, y)
#define METALLOID_LAST_3(WORD, ...) METALLOID_LAST_2(WORD, __VA_ARGS__) WORD(__VA_ARGS__, z)
#define METALLOID_LAST_4(WORD, ...) METALLOID_LAST_3(WORD, __VA_ARGS__) WORD(__VA_ARGS__, w)

#define METALLOID_WORDS2_2(a) METALLOID_LAST_2(METALLOID_SWIZZLE2, a)
#define METALLOID_WORDS2_3(a) METALLOID_LAST_3(METALLOID_SWIZZLE2, a)
#define METALLOID_WORDS2_4(a) METALLOID_LAST_4(METALLOID_SWIZZLE2, a)
#define METALLOID_ENDS3_2(a, b) METALLOID_LAST_2(METALLOID_SWIZZLE3, a, b)
#define METALLOID_ENDS3_3(a, b) METALLOID_LAST_3(METALLOID_SWIZZLE3, a, b)
#define METALLOID_ENDS3_4(a, b) METALLOID_LAST_4(METALLOID_SWIZZLE3, a, b)
#define METALLOID_WORDS3_2(a) METALLOID_THEN_2(METALLOID_ENDS3_2, a)
#define METALLOID_WORDS3_3(a) METALLOID_THEN_3(METALLOID_ENDS3_3, a)
#define METALLOID_WORDS3_4(a) METALLOID_THEN_4(METALLOID_ENDS3_4, a)
#define METALLOID_ENDS4_2(a, b, c) METALLOID_LAST_2(METALLOID_SWIZZLE4, a, b, c)
#define METALLOID_ENDS4_3(a, b, c) METALLOID_LAST_3(METALLOID_SWIZZLE4, a, b, c)
#define METALLOID_ENDS4_4(a, b, c) METALLOID_LAST_4(METALLOID_SWIZZLE4, a, b, c)
#define METALLOID_TAILS4_2(a, b) METALLOID_THEN_2(METALLOID_ENDS4_2, a, b)
#define METALLOID_TAILS4_3(a, b) METALLOID_THEN_3(METALLOID_ENDS4_3, a, b)
#define METALLOID_TAILS4_4(a, b) METALLOID_THEN_4(METALLOID_ENDS4_4, a, b)
#define METALLOID_WORDS4_2(a) METALLOID_NEXT_2(METALLOID_TAILS4_2, a)
#define METALLOID_WORDS4_3(a) METALLOID_NEXT_3(METALLOID_TAILS4_3, a)
#define METALLOID_WORDS4_4(a) METALLOID_NEXT_4(METALLOID_TAILS4_4, a)

#define METALLOID_WORDS_2(a) METALLOID_WORDS2_2(a) METALLOID_WORDS3_2(a) METALLOID_WORDS4_2(a)
#define METALLOID_WORDS_3(a) METALLOID_WORDS2_3(a) METALLOID_WORDS3_3(a) METALLOID_WORDS4_3(a)
#define METALLOID_WORDS_4(a) METALLOID_WORDS2_4(a) METALLOID_WORDS3_4(a) METALLOID_WORDS4_4(a)

// ---- all words without a repeated letter --------------------------------------------------------
#define METALLOID_SETTERS2_XY METALLOID_SETTER2(x, y) METALLOID_SETTER2(y, x)
#define METALLOID_SETTERS2_XYZ \
  METALLOID_SETTERS2_XY \
  METALLOID_SETTER2(x, z) METALLOID_SETTER2(z, x) METALLOID_SETTER2(y, z) METALLOID_SETTER2(z, y)
#define METALLOID_SETTERS2_XYZW \
  METALLOID_SETTERS2_XYZ \
  METALLOID_SETTER2(x, w) METALLOID_SETTER2(w, x) METALLOID_SETTER2(y, w) METALLOID_SETTER2(w, y) \
  METALLOID_SETTER2(z, w) METALLOID_SETTER2(w, z)

#define METALLOID_ORDERS3(a, b, c) \
  METALLOID_SETTER3(a, b, c) METALLOID_SETTER3(a, c, b) METALLOID_SETTER3(b, a, c) \
  METALLOID_SETTER3(b, c, a) METALLOID_SETTER3(c, a, b) METALLOID_SETTER3(c, b, a)
#define METALLOID_SETTERS3_XYZ METALLOID_ORDERS3(x, y, z)
#define METALLOID_SETTERS3_XYZW \
  METALLOID_ORDERS3(x, y, z) METALLOID_ORDERS3(x, y, w) METALLOID_ORDERS3(x, z, w) \
  METALLOID_ORDERS3(y, z, w)

#define METALLOID_ORDERS4(a, b, c, d) \
  METALLOID_SETTER4(a, b, c, d) METALLOID_SETTER4(a, b, d, c) METALLOID_SETTER4(a, c, b, d) \
  METALLOID_SETTER4(a, c, d, b) METALLOID_SETTER4(a, d, b, c) METALLOID_SETTER4(a, d, c, b)
#define METALLOID_SETTERS4_XYZW \
  METALLOID_ORDERS4(x, y, z, w) METALLOID_ORDERS4(y, x, z, w) METALLOID_ORDERS4(z, x, y, w) \
  METALLOID_ORDERS4(w, x, y, z)

// ---- what a vector class includes in its body ---------------------------------------------------
#define METALLOID_SWIZZLES_2 \
  METALLOID_WORDS_2(x) METALLOID_WORDS_2(y) \
  METALLOID_SETTERS2_XY
#define METALLOID_SWIZZLES_3 \
  METALLOID_WORDS_3(x) METALLOID_WORDS_3(y) METALLOID_WORDS_3(z) \
  METALLOID_SETTERS2_XYZ METALLOID_SETTERS3_XYZ
#define METALLOID_SWIZZLES_4 \
  METALLOID_WORDS_4(x) METALLOID_WORDS_4(y) METALLOID_WORDS_4(z) METALLOID_WORDS_4(w) \
  METALLOID_SETTERS2_XYZW METALLOID_SETTERS3_XYZW METALLOID_SETTERS4_XYZW
