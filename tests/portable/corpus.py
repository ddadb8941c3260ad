"""Write the texts that the array layer generates, for Apple's compiler: ``python tests/portable/corpus.py``.

On a Mac with Xcode's command line tools ``sh tests/portable/compile.sh`` compiles them all.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "array"))
HEAD = "#include <metal_stdlib>"


def texts():
    """Text by file name, of every expression of tests/array/test_generated_msl.py."""
    import test_generated_msl as generated

    for name, expression in generated.EXPRESSIONS.items():
        parts = expression(generated.FLOATS).msl().split(HEAD)[1:]
        for number, kernel in enumerate(parts, 1):
            count = f"_{number}" if len(parts) > 1 else ""
            yield f"{name.replace(' ', '_')}{count}.metal", HEAD + kernel.rstrip() + "\n"


if __name__ == "__main__":
    for old in FOLDER.glob("*.metal"):
        old.unlink()
    for name, text in texts():
        (FOLDER / name).write_text(text)
