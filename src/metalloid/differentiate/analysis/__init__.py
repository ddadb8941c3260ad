"""Analyses of a program: flow of derivatives, indices, owners of memory."""
