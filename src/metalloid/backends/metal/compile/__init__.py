"""From MSL source to a compute pipeline, by Metal's own compiler, and the limits of a GPU.

Called by ``runtime``; ``programs.py`` is the entry point.
"""
