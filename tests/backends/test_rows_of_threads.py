"""Several rows of threads at a time give the bits that each thread gives by itself."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalloid as mtl
from metalloid.backends.cpu.compile import variants

pytestmark = pytest.mark.needs("the CPU")

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
NUMBERS = 4096
PRODUCT = """kernel void product(device float* c, device const float* a, device const float* b,
    constant packed_uint3& size, uint2 g [[thread_position_in_grid]]) {
  GUARD
  float total = 0;
  for (uint k = 0; k < size.z; ++k) total += a[g.y * size.z + k] * b[k * size.x + g.x];
  c[g.y * size.x + g.x] = total;
}"""
GUARDS = {
    "none": "",
    "together": "if (g.x >= size.x || g.y >= size.y) return;",
    "of rows": "if (g.y >= size.y) return; if (g.x >= size.x) return;",
    "that parts rows": "if (g.x >= size.x || g.y % 3 == 1 || g.y >= size.y) return;",
}


def compiled(text, engine="simd"):
    with mtl.config.scope(cpu_engine=engine):
        lib = mtl.library(HEAD + text)
        [name] = lib
        return lib[name]


def rows(kernel):
    """The number of rows that it does at a time."""
    words = kernel.engine.split()
    return int(words[-2]) if words[-1] == "rows" else 1


@pytest.mark.parametrize("guard", GUARDS)
@settings(max_examples=10, deadline=None)
@given(
    st.tuples(st.integers(1, 70), st.integers(1, 45), st.integers(0, 9)),
    st.sampled_from([None, (32, 16), (64, 5), (16, 16), (8, 8), (5, 3), (256, 1)]),
)
def test_products_of_all_sizes(guard, size, group):
    kernel = compiled(PRODUCT.replace("GUARD", GUARDS[guard]))
    assert rows(kernel) > 1
    columns, lines, depth = size
    rng = np.random.default_rng(columns)
    a = rng.normal(size=(lines, depth)).astype(np.float32)
    b = rng.normal(size=(depth, columns)).astype(np.float32)
    grid = (columns, lines)
    if guard != "none" and group is not None:
        grid = tuple(-(-n // m) * m for n, m in zip(grid, group, strict=True))
    c = np.full((lines, columns), -7, np.float32)
    kernel(c, a, b, np.array(size, np.uint32), threads=grid, group_size=group)
    expected = np.zeros((lines, columns), np.float32)
    for k in range(depth):  # in a thread's order: the same bits
        expected += a[:, k, None] * b[k]
    if guard == "that parts rows":
        expected[1::3] = -7
    assert np.array_equal(c, expected)


def random_text(rng):
    """A kernel whose rows share loads, and differ otherwise."""

    def number(depth=2):
        leaves = [
            f"a[(g.y * {rng.randint(1, 9)} + k) % {NUMBERS}]",
            f"b[(k * {rng.randint(1, 40)} + g.x) % {NUMBERS}]",
            "s", "t", "float(g.y)", "float(g.x)", "float(k)", "0.5f",
        ]  # fmt: skip
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(leaves)
        one, two, three = (number(depth - 1) for _ in range(3))
        forms = [
            f"({one} + {two})", f"({one} * {two})", f"({one} - {two})", f"fma({one}, {two}, {three})",
            f"({one} < {two} ? {three} : {one})", f"min({one}, {two})",
            f"((g.y & {rng.randint(1, 3)}) ? {one} : {two})",
        ]  # fmt: skip
        return rng.choice(forms)

    def update():
        target = rng.choice("st")
        statement = f"{target} = {number()};"
        kind = rng.random()
        if kind < 0.15:
            return f"if ({number(0)} > {number(0)}) {{ {statement} }}"
        if kind < 0.25:
            jump = rng.choice(("continue", "break"))
            return f"if (b[(k + g.x) % {NUMBERS}] > 0.3f) {jump}; {statement}"
        return statement

    guards = [
        "", "if (g.y >= h) return;", "if (g.x >= w || g.y >= h) return;",
        "if (g.y % 5 == 2) return;", "if (g.y % 4 == 1) t = 2; else s = 3;",
        f"if (a[g.y % {NUMBERS}] < 0) t = float(g.x);",
    ]  # fmt: skip
    guard = rng.choice(guards)
    loop = (
        f"for (uint k = 0; k < n; ++k) {{ {' '.join(update() for _ in range(rng.randint(1, 3)))} }}"
    )
    if rng.random() < 0.3:
        loop = f"for (uint j = 0; j < 2; ++j) {{ {loop} t += b[(j + g.x) % {NUMBERS}]; }}"
    after = rng.choice(
        ["", f"if (g.x % 3 == 1) s = {number(1)};", "for (uint i = 0; i < n; ++i) s += b[i];"]
    )
    shared = f"s += b[(k * 3 + g.x) % {NUMBERS}] * a[(g.y + k) % {NUMBERS}]; "
    return f"""kernel void k(device float* out, device const float* a, device const float* b,
        constant uint& w, constant uint& h, constant uint& n, uint2 g [[thread_position_in_grid]]) {{
      float s = 0, t = 1; uint k = 0;
      {guard}
      {loop.replace("{ ", "{ " + shared, 1)}
      {after}
      out[(g.y * w + g.x) * 2] = s;
      out[(g.y * w + g.x) * 2 + 1] = t;
    }}"""


def check_random(seeds, monkeypatch):
    """Whether engines agree; how many of the kernels do several rows at a time."""
    monkeypatch.setattr(variants, "_MAX_THREADS_WITHOUT_MASKS", 0)
    coarsened = 0
    for seed in seeds:
        text = random_text(random.Random(seed))
        kernels = [compiled(text, engine) for engine in ("reference", "simd")]
        coarsened += rows(kernels[1]) > 1
        data = np.random.default_rng(seed)
        a, b = (data.normal(size=NUMBERS).astype(np.float32) for _ in range(2))
        for (w, h), group in [((40, 33), (40, 16)), ((70, 9), (16, 9)), ((33, 20), None)]:
            out = [np.full((h, w, 2), -7, np.float32) for _ in kernels]
            for kernel, result in zip(kernels, out, strict=True):
                kernel(result, a, b, w, h, 5, threads=(w, h), group_size=group)
            np.testing.assert_array_equal(*out, err_msg=text)  # NaN is NaN
    return coarsened


def test_random_kernels_with_loads_that_rows_share(monkeypatch):
    assert check_random(range(5), monkeypatch) >= 2


@pytest.mark.slow
def test_many_random_kernels_with_loads_that_rows_share(monkeypatch):
    assert check_random(range(100, 400), monkeypatch) >= 90


@pytest.mark.parametrize(
    ("what", "loop"),
    [
        ("nothing shared", "total += a[g.y * size.z + k];"),
        ("the same for all lanes", "total += a[g.y * size.z + k] * b[k];"),
        ("rows that leave loops by themselves", "total += b[k + g.x]; if (total > a[g.y]) break;"),
        ("what others see", "total += b[k + g.x] * a[g.y];"
         "atomic_fetch_add_explicit((device atomic_uint*)c, 1u, memory_order_relaxed);"),
    ],
)  # fmt: skip
def test_one_row_at_a_time(what, loop):
    text = PRODUCT.replace("GUARD", "")
    one = text[: text.index("total += a")] + f"{{ {loop} }}\n" + text[text.index("  c[") :]
    assert rows(compiled(one)) == 1, what


SUMS = """kernel void sums(device const float* a, device const float* b, device atomic_float* p,
    device atomic_float* q, constant uint3& size, uint2 g [[thread_position_in_grid]]) {
  GUARD
  for (uint k = 0; k < size.z; ++k) {
    float v = a[g.y * size.z + k], w = b[k * size.x + g.x];
    atomic_fetch_add_explicit(&p[g.y * size.z + k], w * w, memory_order_relaxed);
    atomic_fetch_add_explicit(&q[k * size.x + g.x], v * w, memory_order_relaxed);
    atomic_fetch_add_explicit(&q[k * size.x + g.x], v, memory_order_relaxed);
  }
}"""


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("shape", [(256, 64, 5), (67, 70, 3), (33, 131, 4)])
def test_sums_of_rows(guard, shape):
    """Rows add to the elements that they share, and lanes to those of their row."""
    columns, lines, depth = shape
    text = SUMS.replace("GUARD", GUARDS[guard])
    kernel = compiled(text)
    random = np.random.default_rng(0)
    a = random.integers(0, 8, (lines, depth)).astype(np.float32)
    b = random.integers(0, 8, (depth, columns)).astype(np.float32)
    p, q = np.ones_like(a), np.ones_like(b)
    size = np.array([columns, lines, depth, 0], np.uint32)
    kernel(a, b, p, q, size, threads=(columns, lines))
    runs = np.ones(lines, bool)
    if "parts" in guard:
        runs = np.arange(lines) % 3 != 1
    assert np.array_equal(p, 1 + runs[:, None] * (b**2).sum(1))
    assert np.array_equal(q, 1 + b * a[runs].sum(0)[:, None] + a[runs].sum(0)[:, None])
    assert rows(kernel) == 4
