"""What metalloid's CPU kernels are measured against: C, and other Python packages."""
