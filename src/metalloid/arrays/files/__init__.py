"""File formats: npy, npz, safetensors, and atomic replacement. `functions.io` calls them."""
