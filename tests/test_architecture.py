"""The structure of the package: which may import which, and what an import may cost."""

import ast
import graphlib
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "metalloid"

#: Each layer may import only those before it.
LAYERS = (
    "errors", "unknown_keywords", "display", "setting_parsers", "settings", "deprecation", "dtypes", "msl", "compiler",
    "runtime",
    "backends", "metal", "kernels", "differentiate", "arrays", "transforms", "linalg", "fft", "random", "numpy",
    "nn", "compat", "sanitizer", "testing", "bench", "profiler", "cli", "notebook", "dask",
    "dask_sizeof",
)  # fmt: skip

#: The same inside packages, for folders and for modules next to them.
MEMBERS = {
    "arrays": (
        "metal", "ir", "planning", "codegen", "execution", "interop", "lowering", "library",
        "operators", "array", "files", "functions", "api",
    ),
    "compiler": (
        "toolchain", "frontend", "ir", "analysis", "transforms", "bounds", "sanitizer", "counting",
        "vectorize",
    ),
    "runtime": (
        "atomic_file", "interop", "launch", "devices", "memory", "textures", "arguments", "graph",
    ),
    "backends/cpu": ("host", "compile", "runtime"),
    "backends/cuda": ("compile", "libraries", "runtime"),
    "backends/metal": ("pyobjc", "compile", "runtime"),
    "backends/opencl": ("compile", "runtime"),
    "differentiate": (
        "metal", "program", "lane_rules", "rules", "analysis", "frontend", "textures", "matrices",
        "tape", "writer", "derived", "forward_sweep", "propagate", "sweep", "adjoint_text", "adjoint",
        "tangent", "frameworks",
    ),
    "profiler": (
        "records", "callers", "counting", "hooks", "text", "lines", "results", "table", "perfetto",
        "plot", "profile",
    ),
}  # fmt: skip
#: Packages in which no module imports itself through others, not even for types.
ACYCLIC = (
    "arrays", "compiler", "runtime", "backends/cpu", "backends/cuda", "backends/metal",
    "backends/opencl",
)  # fmt: skip
MAX_FILES = 20


def imports_of(path):
    """``(module, runs)`` of each import of the package; not `runs` for types only."""
    tree = ast.parse(path.read_text())
    for_types = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for_types.update(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("metalloid"):
            yield node.module, node not in for_types
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.startswith("metalloid"):
                    yield name.name, node not in for_types


def modules():
    return [p for p in sorted(PACKAGE.rglob("*.py")) if p.parent != PACKAGE or p.name[0] != "_"]


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_in_one_direction(path):
    layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for module, runs in imports_of(path):
        if module == "metalloid" or not runs:
            continue
        imported = module.split(".")[1]
        assert LAYERS.index(imported) <= LAYERS.index(layer), f"{layer} imports {imported}"
        if layer == "backends" and imported == "backends":
            own = path.relative_to(PACKAGE).parts[1]
            assert module.split(".")[2] == own, f"backend {own} imports {module}"
        if layer != "backends":
            assert imported != "backends", "devices are opened by runtime.devices.registry, by name"


@pytest.mark.parametrize("package", MEMBERS)
def test_folders_of_a_package_import_in_one_direction(package):
    members, folder = MEMBERS[package], PACKAGE / package
    inside = ["metalloid", *package.split("/")]
    for path in folder.rglob("*.py"):
        member = path.relative_to(folder).parts[0].removesuffix(".py")
        if member == "__init__":
            continue
        for module, _ in imports_of(path):
            names = module.split(".")
            name = names[len(inside) :][:1]
            if names[: len(inside)] == inside and name:
                assert members.index(name[0]) <= members.index(member), f"{path}: imports {module}"


@pytest.mark.parametrize("package", ACYCLIC)
def test_there_are_no_import_cycles(package):
    names = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"):
        path
        for path in (PACKAGE / package).rglob("*.py")
    }  # fmt: skip
    graph = {name: {m for m, _ in imports_of(path) if m in names} for name, path in names.items()}
    graphlib.TopologicalSorter(graph).prepare()


def test_folders_are_small_and_say_what_they_hold():
    headers = {PACKAGE / "msl" / "include"}  # a file for each header of Metal
    for folder in {path.parent for path in PACKAGE.rglob("*.[ch]")} - headers:
        assert len([p for p in folder.iterdir() if p.suffix in (".c", ".h", ".S")]) <= MAX_FILES, (
            folder
        )
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        files = [path for path in folder.iterdir() if path.suffix in (".py", ".c", ".h")]
        is_of_metal = folder == PACKAGE / "compat" / "Metal"  # whose modules are Metal's protocols
        assert len(files) <= MAX_FILES + 1 or is_of_metal, folder  # and __init__.py
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


def test_every_folder_of_the_package_is_a_layer():
    names = {p.name.removesuffix(".py") for p in PACKAGE.iterdir() if not p.name.startswith("_")}
    assert names - {"py.typed"} <= set(LAYERS)


def test_import_is_light():
    code = (
        "import sys, metalloid; "
        "heavy = {'numpy', 'rich', 'PIL', 'ml_dtypes', 'ctypes', 'subprocess'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    path = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); "
    subprocess.run([sys.executable, "-S", "-c", path + code], check=True)


def test_public_names_exist():
    import metalloid

    for name in metalloid.__all__:
        assert getattr(metalloid, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = metalloid.nonsense
    with pytest.raises(AttributeError, match=r"no attribute 'librery'\. Did you mean 'library'\?"):
        _ = metalloid.librery


@pytest.mark.parametrize(
    ("module", "name", "near"),
    [
        ("linalg", "nrom", "norm"), ("fft", "ftt", "fft"), ("random", "unifrom", "uniform"),
        ("nn", "sofmax", "softmax"), ("numpy", "arrange", "arange"),
        ("numpy.linalg", "nrom", "norm"), ("numpy.fft", "rftt", "rfft"),
        ("numpy.random", "randnn", "randn"), ("numpy.polynomial", "Polynomal", "Polynomial"),
    ],
)  # fmt: skip
def test_unknown_names_of_modules_have_a_suggestion(module, name, near):
    imported = importlib.import_module(f"metalloid.{module}")
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. Did you mean '{near}'\?"):
        getattr(imported, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing_like_it'$"):
        _ = imported.nothing_like_it


def test_files_stay_small():
    for path in [*modules(), *PACKAGE.rglob("*.h"), *PACKAGE.rglob("*.c")]:
        lines = path.read_text().count("\n")
        assert lines <= 450, f"{path.relative_to(PACKAGE)} has {lines} lines"
