"""``mlx.core`` on the arrays, kernels and transforms of metalloid.

Every public name of MLX 0.32.4 is here. `metalloid.compat.mlx.install` puts this package where
``import mlx.core`` finds it.
"""

# ruff: noqa: F401, F403

from __future__ import annotations

import math

from metalloid.compat.mlx.core import cuda, distributed, fast, fft, linalg, metal, random
from metalloid.compat.mlx.core.array import *
from metalloid.compat.mlx.core.compiling import *
from metalloid.compat.mlx.core.devices import *
from metalloid.compat.mlx.core.dtypes import *
from metalloid.compat.mlx.core.export import *
from metalloid.compat.mlx.core.io import *
from metalloid.compat.mlx.core.linalg import matrix_norm
from metalloid.compat.mlx.core.methods import define_methods
from metalloid.compat.mlx.core.ops.convolution import *
from metalloid.compat.mlx.core.ops.creation import *
from metalloid.compat.mlx.core.ops.elementwise import *
from metalloid.compat.mlx.core.ops.indexing import *
from metalloid.compat.mlx.core.ops.joining import *
from metalloid.compat.mlx.core.ops.memory import *
from metalloid.compat.mlx.core.ops.numerics import *
from metalloid.compat.mlx.core.ops.products import *
from metalloid.compat.mlx.core.ops.reductions import *
from metalloid.compat.mlx.core.ops.selection import *
from metalloid.compat.mlx.core.ops.shapes import *
from metalloid.compat.mlx.core.printing import *
from metalloid.compat.mlx.core.transforms import *

define_methods()

__version__ = "0.32.4"

e = math.e
euler_gamma = 0.5772156649015329
inf = math.inf
nan = math.nan
newaxis = None
pi = math.pi
