// Elements at which a mask is true, one after another, and their numbers.
//
// Which elements are true is hard to predict, so nothing branches: each is stored, and the next one at
// the same address unless it is true. Words are compressed eight at a time with AVX-512.
#include "layouts.h"

// As `_compacted` packs it (lowering/host_compaction.py).
struct compaction {
  const void* values;  // null for the numbers of elements
  const uint8_t* mask;
  void* out;
  int64_t size, count, item_bytes, has_avx512;
};

#define DEFINE_COMPACT(name, type)                                                              \
  static void name(const struct compaction* c, int64_t i, int64_t k) {                          \
    const type* values = c->values;                                                             \
    type* out = c->out;                                                                         \
    for (; i < c->size && k < c->count; i++) {                                                  \
      out[k] = values[i];                                                                       \
      k += c->mask[i];                                                                          \
    }                                                                                           \
  }
struct pair {
  uint64_t first, second;
};
DEFINE_COMPACT(compact_1, uint8_t)
DEFINE_COMPACT(compact_2, uint16_t)
DEFINE_COMPACT(compact_4, uint32_t)
DEFINE_COMPACT(compact_8, uint64_t)
DEFINE_COMPACT(compact_16, struct pair)
#undef DEFINE_COMPACT

static void compact_numbers(const struct compaction* c, int64_t i, int64_t k) {
  int64_t* out = c->out;
  for (; i < c->size && k < c->count; i++) {
    out[k] = i;
    k += c->mask[i];
  }
}

static void compact(const struct compaction* c, int64_t i, int64_t k) {
  if (!c->values) compact_numbers(c, i, k);
  else if (c->item_bytes == 1) compact_1(c, i, k);
  else if (c->item_bytes == 2) compact_2(c, i, k);
  else if (c->item_bytes == 4) compact_4(c, i, k);
  else if (c->item_bytes == 8) compact_8(c, i, k);
  else compact_16(c, i, k);
}

#ifdef __x86_64__
#include <immintrin.h>

enum { LANES = 8 };

// Of eight bytes that are 0 or 1.
static inline uint8_t bits_of_mask(const uint8_t* mask) {
  uint64_t bytes;
  memcpy(&bytes, mask, sizeof bytes);
  return (uint8_t)((bytes * 0x0102040810204080u) >> 56);
}

// As many elements as can be stored eight at a time; the rest one by one.
__attribute__((target("avx512f,avx512vl,popcnt"))) static void compact_vectors(const struct compaction* c) {
  __m512i numbers = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
  int64_t i = 0, k = 0;
  for (; i + LANES <= c->size && k + LANES <= c->count; i += LANES) {
    const uint8_t bits = bits_of_mask(c->mask + i);
    if (c->item_bytes == 4) {
      const __m256i given = _mm256_loadu_si256((const void*)((const uint32_t*)c->values + i));
      _mm256_storeu_si256((void*)((uint32_t*)c->out + k), _mm256_maskz_compress_epi32(bits, given));
    } else {
      const __m512i given = c->values ? _mm512_loadu_si512((const uint64_t*)c->values + i) : numbers;
      _mm512_storeu_si512((uint64_t*)c->out + k, _mm512_maskz_compress_epi64(bits, given));
    }
    numbers = _mm512_add_epi64(numbers, _mm512_set1_epi64(LANES));
    k += _mm_popcnt_u32(bits);
  }
  compact(c, i, k);
}
#else
static void compact_vectors(const struct compaction* c) { compact(c, 0, 0); }
#endif

// Elements of 1, 2, 4, 8 or 16 bytes, for an array of as many as are true.
MTL_EXPORT void mtl_compact(const struct compaction* c) {
  void* thread = PyEval_SaveThread();
  const bool are_words = c->item_bytes == 4 || c->item_bytes == 8;
  if (c->has_avx512 && are_words) compact_vectors(c);
  else compact(c, 0, 0);
  PyEval_RestoreThread(thread);
}
