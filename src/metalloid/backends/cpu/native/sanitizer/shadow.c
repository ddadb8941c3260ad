/* Shadow memory: cells for the units of memory that checked launches access, in pages by address.
 *
 * A unit has four bytes, until a page sees an access that is smaller or not aligned: then its units
 * have the size of that access. */
#include "sanitizer.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BITS = 12, PAGE = 1 << PAGE_BITS, UNIT_BITS = 2 };

typedef struct page {
    uint64_t number; /* address / PAGE */
    uint32_t unit_bits;
    mtl_cell *cells;
} page;

static struct {
    page *pages; /* a hash table */
    size_t capacity, count;
    page *last;
    mtl_atomics *atomics;
    uint32_t atomics_capacity, atomics_count;
} shadow;

void mtl_shadow_clear(void) {
    for (size_t i = 0; i < shadow.capacity; i++) free(shadow.pages[i].cells);
    free(shadow.pages);
    free(shadow.atomics);
    memset(&shadow, 0, sizeof shadow);
}

static page *slot_of(page *pages, size_t capacity, uint64_t number) {
    size_t i = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (capacity - 1);
    while (pages[i].cells && pages[i].number != number) i = (i + 1) & (capacity - 1);
    return &pages[i];
}

static bool grow(void) {
    size_t capacity = shadow.capacity ? 2 * shadow.capacity : 64;
    page *pages = calloc(capacity, sizeof *pages);
    if (!pages) return false;
    for (size_t i = 0; i < shadow.capacity; i++) {
        page *old = &shadow.pages[i];
        if (old->cells) *slot_of(pages, capacity, old->number) = *old;
    }
    free(shadow.pages);
    shadow.pages = pages;
    shadow.capacity = capacity;
    shadow.last = NULL;
    return true;
}

/* The page of an address, made if there is none; NULL without memory for it. */
static page *page_of(uint64_t address) {
    uint64_t number = address >> PAGE_BITS;
    if (shadow.last && shadow.last->number == number) return shadow.last;
    if (2 * shadow.count >= shadow.capacity && !grow()) return NULL;
    page *match = slot_of(shadow.pages, shadow.capacity, number);
    if (!match->cells) {
        mtl_cell *cells = calloc(PAGE >> UNIT_BITS, sizeof *cells);
        if (!cells) return NULL;
        *match = (page){number, UNIT_BITS, cells};
        shadow.count++;
    }
    return shadow.last = match;
}

static uint32_t copy_of_atomics(uint32_t index) {
    if (shadow.atomics_count + 1 >= shadow.atomics_capacity) {
        uint32_t capacity = 2 * shadow.atomics_capacity + 64;
        mtl_atomics *grown = realloc(shadow.atomics, capacity * sizeof *grown);
        if (!grown) return 0;
        shadow.atomics = grown;
        shadow.atomics_capacity = capacity;
    }
    uint32_t copy = ++shadow.atomics_count; /* 0 stands for none */
    if (index) shadow.atomics[copy] = shadow.atomics[index];
    else shadow.atomics[copy] = (mtl_atomics){0};
    return copy;
}

/* The atomic accesses of a cell, made if there are none; NULL without memory for them. */
mtl_atomics *mtl_shadow_atomics(mtl_cell *cell) {
    if (!cell->atomics) cell->atomics = copy_of_atomics(0);
    return cell->atomics ? &shadow.atomics[cell->atomics] : NULL;
}

/* Divides the units of a page. */
static bool divide(page *page, uint32_t unit_bits) {
    mtl_cell *cells = calloc(PAGE >> unit_bits, sizeof *cells);
    if (!cells) return false;
    uint32_t more = page->unit_bits - unit_bits;
    for (uint32_t i = 0; i < PAGE >> unit_bits; i++) {
        cells[i] = page->cells[i >> more];
        if (cells[i].atomics && i & ((1u << more) - 1)) {
            cells[i].atomics = copy_of_atomics(cells[i].atomics);
        }
    }
    free(page->cells);
    page->cells = cells;
    page->unit_bits = unit_bits;
    return true;
}

/* Visits the cells of some bytes. False without memory for them. */
bool mtl_shadow_visit(uint64_t address, uint64_t bytes, mtl_visit_cell *visit, void *state) {
    uint64_t end = address + bytes;
    uint32_t unit_bits = UNIT_BITS;
    while ((address | end) & ((1u << unit_bits) - 1)) unit_bits--;
    while (address < end) {
        page *page = page_of(address);
        if (!page) return false;
        if (unit_bits < page->unit_bits && !divide(page, unit_bits)) return false;
        uint64_t start = page->number << PAGE_BITS, stop = start + PAGE;
        if (stop > end) stop = end;
        uint64_t last = (stop - start - 1) >> page->unit_bits;
        for (uint64_t i = (address - start) >> page->unit_bits; i <= last; i++) {
            visit(&page->cells[i], state);
        }
        address = stop;
    }
    return true;
}
