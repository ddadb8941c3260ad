"""The programs and files that compilation needs: clang, the linker, targets, the cache.

Everything else in the compiler may call it; it calls nothing else of the package.
"""
