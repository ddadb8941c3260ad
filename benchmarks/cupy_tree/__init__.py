"""CuPy's own tests on `metalloid.numpy`.

    git clone --filter=blob:none https://github.com/cupy/cupy
    python -m cupy_tree CHECKOUT [--folders math sorting] [--workers 8] [--out results.jsonl]

Run it in the folder `benchmarks`. `adapter.py` makes the module `cupy` that the tests import,
`plugin.py` notes the outcomes, and `__main__.py` runs the folders and writes the table. Nothing of
CuPy but its tests and its package `cupy.testing`, which is Python, is used: no build of CuPy.
"""
