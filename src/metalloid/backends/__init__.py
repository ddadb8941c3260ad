"""One folder per kind of device; no device imports another."""
