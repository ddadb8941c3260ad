"""Jupyter notebooks: ``%load_ext metalloid`` for cells of Metal and timed statements."""
