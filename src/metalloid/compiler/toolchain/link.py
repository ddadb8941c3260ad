"""From an object file to a shared object that this process can load."""

from __future__ import annotations

import platform
from pathlib import Path

from metalloid.compiler.toolchain import clang
from metalloid.errors import DeviceUnavailable


def shared_object(objects: dict[str, bytes], name: str) -> bytes:
    """Link object files; symbols they lack are looked for in the process when it is loaded.

    Parameters
    ----------
    objects : dict
        Contents by file name.
    name : str
        Of the library, for debuggers.
    """
    import tempfile  # here, as what has been linked runs without it

    with tempfile.TemporaryDirectory(prefix="metalloid-") as folder:
        paths = []
        for file, contents in objects.items():
            path = Path(folder) / file
            path.write_bytes(contents)
            paths.append(str(path))
        output = Path(folder) / "linked"
        if platform.system() == "Darwin":
            # zig's own linker signs the result, without which macOS refuses to load it.
            command = ["cc", "-shared", "-nostdlib", "-Wl,-undefined,dynamic_lookup"]
        else:
            # Two mappings a library, of the 65,530 that Linux gives a process; it would be three.
            few_mappings = ["--no-rosegment", "-z", "norelro"]
            command = [
                "ld.lld", "-shared", "-soname", name, "-z", "now", "-z", "noexecstack",
                *few_mappings,
            ]  # fmt: skip
        outcome = clang.run([*command, "-o", str(output), *paths], scratch=folder)
        if outcome.status != 0:
            raise DeviceUnavailable(f"[compiler] {name} could not be linked:\n{outcome.messages}")
        return output.read_bytes()
