"""Functions by the chapters of NumPy, with its arguments."""
