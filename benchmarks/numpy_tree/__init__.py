"""NumPy's own tests on `metalloid.numpy`.

    python -m numpy_tree [--files test_numeric test_linalg] [--workers 2] [--out results.jsonl]

Run it in the folder `benchmarks`. The tests are those of the installed NumPy. `adapter.py` makes
the module that they import instead of `numpy`, `reasons.py` says what cannot be, `plugin.py` notes
the outcomes, and `__main__.py` runs the files and writes the table.
"""
