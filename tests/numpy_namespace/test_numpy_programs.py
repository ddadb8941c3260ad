"""Ordinary NumPy programs, which print the same with `metalloid.numpy`."""

import contextlib
import io

import numpy
import pytest

import metalloid.numpy as own

PROGRAMS = {
    "waves": """
x = np.linspace(0, 2*np.pi, 7)
y = np.sin(x)
print(y.round(3), y.max(), y.argmin(), y.dtype)
print(np.array([1,2,3])/2, np.arange(6).reshape(2,3).T)
a = np.zeros((3,4)); a[1,2]=5; a[0]=np.arange(4); a[:,1]+=1; print(a)
print(f"{a.sum():.3f} {a.mean()}")
""",
    "mandelbrot": """
def mandel(n, m):
    re, im = np.meshgrid(np.linspace(-2, 1, n), np.linspace(-1.5, 1.5, m))
    c = re + 1j*im
    z = np.zeros_like(c); k = np.zeros(c.shape, int)
    for _ in range(20):
        mask = np.abs(z) <= 2
        z = np.where(mask, z*z + c, z)
        k[mask] += 1
    return k
k = mandel(12, 8); print(k); print(k.sum(), k.dtype)
""",
    "least squares": """
rng_data = np.arange(20.0)
X = np.stack([np.ones_like(rng_data), rng_data], axis=1)
y = 3*rng_data + 2 + np.sin(rng_data)
w, res, rank, sv = np.linalg.lstsq(X, y, rcond=None)
print(np.round(w, 6), rank)
print(np.allclose(X @ w, y, atol=2))
for i, row in enumerate(X[:3]):
    print(i, row, row @ w > 4)
""",
    "life": """
def life(g):
    n = sum(np.roll(np.roll(g, i, 0), j, 1) for i in (-1,0,1) for j in (-1,0,1) if (i,j) != (0,0))
    return ((n == 3) | ((g == 1) & (n == 2))).astype(int)
g = np.zeros((6,6), dtype=int); g[1,2]=g[2,3]=g[3,1]=g[3,2]=g[3,3]=1
for _ in range(4): g = life(g)
print(g)
""",
    "counts and types": """
d = {}
for v in np.unique(np.array([3,1,2,3,1])): d[int(v)] = int((np.array([3,1,2,3,1]) == v).sum())
print(d)
h, e = np.histogram([1,2,2,3,5], bins=4); print(h, e)
print(np.percentile(np.arange(11), [10, 50, 99.5]), np.median([1,5,2]))
print(repr(np.float32(3)), repr(np.array(2.5)*2), [np.arange(3).sum()])
print(np.issubdtype(np.arange(3).dtype, np.integer))
with np.errstate(divide="ignore", invalid="ignore"): print(np.array([1.,0.])/0)
""",
    "random numbers and methods": """
A = np.random.default_rng(0).random((5,5)); print(A.shape, A.dtype, (A>=0).all())
np.random.seed(3); print(np.random.rand(2,2).shape, np.random.randint(0,5,10).max() < 5)
b = np.arange(5); b[b > 2] = 0; print(b); b *= 2; b[-1] = 7; print(b, b[::-1], b.tolist())
x = np.array([[1,2],[3,4]]); x.sort(axis=0); x.fill(3); print(x); print(len(x), x.size, x.ndim)
q, r = np.linalg.qr(np.array([[2.,1],[1,3]])); print(np.allclose(q@r, [[2,1],[1,3]]))
for idx, v in np.ndenumerate(np.array([[1,2],[3,4]])): print(idx, v)
it = np.nditer(np.arange(3)); print([int(i) for i in it])
print(np.float64(3)*np.arange(3), np.int32(2)+np.arange(3), -np.ones(2, np.float32)*2.5)
try: np.ones(3)+np.ones(4)
except ValueError as e: print("ValueError")
print(np.convolve([1,2,3],[0,1,0.5],'same'), np.interp(2.5,[1,2,3],[3,2,0]))
""",
}


def printed(program, np):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(program, {"np": np})
    return text.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sample(1)
def test_programs_print_the_same(name):
    expected = printed(PROGRAMS[name], numpy)
    assert printed(PROGRAMS[name], own) == expected
    assert expected
