"""What the CPU does with kernels of all kinds: the cases that benchmarks share, and the roofline."""
