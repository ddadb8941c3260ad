"""Taichi on the CPU."""

import taichi

from cpu_rivals.peers.taichi_kernels import launchers

NAME = "taichi"
launcher = launchers(taichi)
