"""Textures and samplers: pixel formats, mip levels, and the descriptors that kernels read.

`texture` builds on the other modules; `arguments` binds textures and samplers to kernels.
"""
