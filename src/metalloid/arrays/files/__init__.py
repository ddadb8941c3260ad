"""File formats: npy, npz, safetensors, and atomic replacement; used by `functions.io`."""
