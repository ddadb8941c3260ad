"""The Metal files of a public repository: which texts they are, and what their kernels become."""
