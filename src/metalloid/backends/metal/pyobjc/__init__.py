"""Metal from Python: the module and the rules of ownership and constants.

Called by ``compile`` and ``runtime``; imports neither.
"""
