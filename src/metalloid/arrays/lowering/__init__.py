"""Lowering: nodes of the functions, and the choice between their implementations."""
