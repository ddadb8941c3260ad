"""PyTorch: what it has a function for; a loop per pixel has no natural form there."""

from __future__ import annotations

import numpy as np
import torch

NAME = "torch"
_FUNCTIONS = {
    "matmul": lambda c, a, b, n: torch.mm(a, b, out=c),
    "histogram": lambda counts, x, share: torch.bincount(x, minlength=256),
    "prefix_sum": lambda y, x, n: torch.cumsum(x, 1, out=y),
    "softmax": lambda y, x, n: torch.softmax(x, 1, out=y),
}


def launcher(case):
    function = _FUNCTIONS.get(case.name)
    if function is None:
        return None
    given = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in case.arguments]
    return lambda: function(*given), lambda: function(*given).numpy().astype(given[0].numpy().dtype)
