"""Finds code that clang accepts and Apple's Metal compiler rejects."""
