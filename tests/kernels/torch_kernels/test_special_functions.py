"""c10/metal/special_math.h and igamma.h against SciPy in float64.

The bounds are of torch's own formulas as measured here on 4,000 points, rounded up: relative, in
units of float32's rounding, and absolute where a function has zeros.
"""

import numpy as np
import pytest
import scipy.special as special
from mlx_tree.agreement import FLOAT, assert_within, roundoff

DRIVER = "special"
_U = roundoff(FLOAT)


#: name: (oracle, interval, relative bound in roundings, absolute bound in roundings)
UNARY = {
    "erf": (special.erf, (-4, 4), 8, 0),
    "erfc": (special.erfc, (-3, 8), 8, 4),  # 1 - erf
    "erfcx": (special.erfcx, (-5, 40), 32, 0),
    "erfinv": (special.erfinv, (-0.999, 0.999), 32, 0),
    "expm1f": (np.expm1, (-0.34, 0.34), 4, 0),  # further out it reduces by a short log(2)
    "log1p": (np.log1p, (-0.99, 50), 8, 0),
    "gamma": (special.gamma, (0.1, 30), 256, 0),
    "log_gamma": (special.gammaln, (0.1, 60), 32, 16),
    "digamma": (special.digamma, (0.1, 60), 16, 64),
    "trigamma": (lambda x: special.polygamma(1, x), (0.1, 40), 32, 0),
    "sinc": (np.sinc, (-6, 6), 16, 8),
    "spherical_bessel_j0": (lambda x: special.spherical_jn(0, x), (0.01, 30), 16, 8),
    "entr": (special.entr, (0.001, 9), 8, 2),
    "i0": (special.i0, (-20, 20), 16, 0),
    "i0e": (special.i0e, (-40, 40), 16, 0),
    "i1": (special.i1, (-20, 20), 32, 0),
    "i1e": (special.i1e, (-40, 40), 32, 0),
    "bessel_j0": (special.j0, (0.01, 40), 16, 32),
    "bessel_j1": (special.j1, (0.01, 40), 16, 32),
    "bessel_y0": (special.y0, (0.05, 40), 16, 32),
    "bessel_y1": (special.y1, (0.05, 40), 16, 32),
    "modified_bessel_i0": (special.i0, (-20, 20), 16, 0),
    "modified_bessel_i1": (special.i1, (-20, 20), 32, 0),
    "modified_bessel_k0": (special.k0, (0.05, 30), 32, 0),
    "modified_bessel_k1": (special.k1, (0.05, 30), 32, 0),
    "scaled_modified_bessel_k0": (special.k0e, (0.05, 60), 32, 0),
    "scaled_modified_bessel_k1": (special.k1e, (0.05, 60), 32, 0),
}

BINARY = {
    "zeta": (special.zeta, (1.1, 20), (0.5, 20), 64, 0),
    "xlogy": (special.xlogy, (0, 9), (0.001, 30), 8, 2),
    "xlog1py": (special.xlog1py, (0, 9), (-0.9, 30), 8, 2),
    "logaddexp": (np.logaddexp, (-20, 20), (-20, 20), 8, 4),
    "logaddexp2": (np.logaddexp2, (-20, 20), (-20, 20), 8, 4),
    "igamma": (special.gammainc, (0.1, 30), (0.01, 40), 256, 32),
    "igammac": (special.gammaincc, (0.1, 30), (0.01, 40), 256, 32),
    "hypot": (np.hypot, (0, 9), (0, 9), 6, 0),
    "pow": (np.power, (0.01, 9), (-8, 8), 8, 0),
    "remainder": (np.remainder, (0.1, 9), (2, 8), 4, 16),
    "floor_divide": (np.floor_divide, (-30, 30), (2, 8), 0, 0),
}


def _agree(y, exact, relative, absolute):
    assert_within(y, exact, (relative * np.abs(exact) + absolute) * _U)


def _sample(rng, interval, count=4000):
    return rng.uniform(*interval, count).astype(np.float32)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.sample(4)
def test_functions_of_one_argument(library, rng, name):
    oracle, interval, relative, absolute = UNARY[name]
    x = _sample(rng, interval)
    y = np.full_like(x, np.nan)
    library[name](y, x, threads=x.size)
    _agree(y, oracle(x.astype(np.float64)), relative, absolute)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.sample(3)
def test_functions_of_two_arguments(library, rng, name):
    oracle, first, second, relative, absolute = BINARY[name]
    a, b = _sample(rng, first), _sample(rng, second)
    y = np.full_like(a, np.nan)
    library[name](y, a, b, threads=a.size)
    _agree(y, oracle(a.astype(np.float64), b.astype(np.float64)), relative, absolute)


POLYNOMIALS = {
    "chebyshev_polynomial_t": special.eval_chebyt,
    "chebyshev_polynomial_u": special.eval_chebyu,
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm,
}


@pytest.mark.parametrize("name", POLYNOMIALS)
@pytest.mark.parametrize("degree", [0, 1, 2, 5])
@pytest.mark.sample(4)
def test_polynomials(library, rng, name, degree):
    x = _sample(rng, (0.05, 0.95))
    y = np.full_like(x, np.nan)
    library[name](y, x, degree, threads=x.size)
    exact = POLYNOMIALS[name](degree, x.astype(np.float64))
    _agree(y, exact, 8, 16 * max(1, degree) ** 2 * max(1.0, float(np.max(np.abs(exact)))))


@pytest.mark.parametrize("kind", "vw")
@pytest.mark.parametrize("degree", [1, 4])
def test_chebyshev_polynomials_of_the_third_and_fourth_kind(library, rng, kind, degree):
    x = _sample(rng, (-0.95, 0.95))
    angle = np.arccos(x.astype(np.float64))
    f = np.cos if kind == "v" else np.sin
    exact = f((degree + 0.5) * angle) / f(angle / 2)
    y, z = np.full_like(x, np.nan), np.full_like(x, np.nan)
    library[f"chebyshev_polynomial_{kind}"](y, x, degree, threads=x.size)
    _agree(y, exact, 64, 64)
    library[f"shifted_chebyshev_polynomial_{kind}"](z, (x + 1) / 2, degree, threads=x.size)
    _agree(z, exact, 256, 256)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_polygamma(library, rng, order):
    x = _sample(rng, (0.2, 30))
    y = np.full_like(x, np.nan)
    library.polygamma(y, x, order, threads=x.size)
    _agree(y, special.polygamma(order, x.astype(np.float64)), 128, 0)
