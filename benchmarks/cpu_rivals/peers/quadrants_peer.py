"""Quadrants, Taichi's continuation, on the CPU."""

import quadrants

from cpu_rivals.peers.taichi_kernels import launchers

NAME = "quadrants"
launcher = launchers(quadrants)
