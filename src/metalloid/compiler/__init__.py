"""From text to code for a target: clang, the standard library, the cache."""
