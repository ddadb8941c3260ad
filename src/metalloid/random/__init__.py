"""Counter-based random numbers: each is a function of a key and of its index.

There is no hidden state that evaluation advances. Numbers are the same on every device, in every
order, whole or sliced, and are computed inside the kernel that uses them. Use a key for one array
only; `split` and `fold_in` derive new keys. Without a key, functions take the next one of a
sequence that `seed` starts.
"""

from typing import TYPE_CHECKING, Any

from metalloid.errors import unknown_attribute
from metalloid.random import rules as _rules  # noqa: F401 - registers them
from metalloid.random.counts import poisson
from metalloid.random.distributions import (
    bernoulli,
    exponential,
    gumbel,
    laplace,
    normal,
    truncated_normal,
    uniform,
)
from metalloid.random.generator import Generator, default_rng
from metalloid.random.integers import bits, randint
from metalloid.random.keys import fold_in, key, seed, split
from metalloid.random.sampling import categorical, choice, permutation

#: Accepted by `inputs` and `outputs` of `compile`, for programs of MLX. Compiled functions capture
#: the sequence of keys in any case.
state: tuple[()] = ()

__all__ = [
    "Generator",
    "bernoulli",
    "bits",
    "categorical",
    "choice",
    "default_rng",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "laplace",
    "normal",
    "permutation",
    "poisson",
    "randint",
    "seed",
    "split",
    "state",
    "truncated_normal",
    "uniform",
]


if not TYPE_CHECKING:  # for checkers, other names are errors

    def __getattr__(name: str) -> Any:
        raise unknown_attribute(__name__, name, __all__)
