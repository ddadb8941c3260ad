"""Types of numbers that the fast launch paths bind."""

from __future__ import annotations

import numpy as np

INTEGERS = (
    int, bool, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
)  # fmt: skip
#: Those that only parameters of floating-point types take.
OTHER_NUMBERS = (float, np.float32, np.float64, np.float16)
