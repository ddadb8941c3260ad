"""metalloid.compat.Metal compared with the data of the real binding: no selector or value of our own.

The data are in the macOS wheel of pyobjc-framework-Metal, which installs nowhere else:

    pip download --no-deps --only-binary=:all: --platform macosx_10_13_universal2 \\
        --python-version 3.12 --implementation cp pyobjc-framework-Metal
    unzip pyobjc_framework_metal-*.whl -d binding
    METALLOID_PYOBJC_METAL=binding/Metal/_metadata.py pytest tests/compat/test_metal_binding.py
"""

import importlib
import inspect
import os
import pkgutil
import re
from pathlib import Path

import pytest

from metalloid.compat import Metal
from metalloid.compat.Metal import constants

#: Ordinary classes: the binding asks the Objective-C runtime for most of their methods.
CLASSES = {
    "MTLArgumentDescriptor",
    "MTLCompileOptions",
    "MTLComputePipelineDescriptor",
    "MTLFunctionConstantValues",
    "MTLSamplerDescriptor",
    "MTLSharedEventListener",
    "MTLTextureDescriptor",
    "NSError",
}
STRUCTURES = {"MTLOrigin", "MTLRegion", "MTLResourceID", "MTLSize"}
OURS = {"CommandEncoder", "MetalObject", "ResourceRanges"}
#: What our objects tell each other.
OWN_NAMES = {
    "CommandEncoder": {"add", "check"},
    "MTLBuffer": {"is_synchronized", "memory", "when_released", "writer", "written"},
    "MTLCommandBuffer": {"add", "encoder_ended", "issue", "retain"},
    "MTLCommandQueue": {"advance", "append", "latest", "ordered", "timeline"},
    "MTLComputePipelineState": {
        "buffers",
        "kernel",
        "required_group",
        "resources",
        "threadgroup",
    },
    "MTLDevice": {"advance", "forget", "started"},
    "MTLEvent": {"is_issued", "queues", "reach"},
    "MTLFunction": {"kernel"},
    "MTLSamplerState": {"sampler"},
    "MTLTexture": {"bytes", "part", "texture"},
}


@pytest.fixture(scope="module")
def binding():
    path = os.environ.get("METALLOID_PYOBJC_METAL")
    if not path:
        pytest.skip("METALLOID_PYOBJC_METAL is missing: the data of pyobjc-framework-Metal")
    return Path(path).read_text()


def classes():
    for info in pkgutil.iter_modules(Metal.__path__):
        module = importlib.import_module(f"{Metal.__name__}.{info.name}")
        for name, value in vars(module).items():
            own = inspect.isclass(value) and value.__module__ == module.__name__
            if own and (name.startswith("MTL") or name in OURS):
                yield name, value


def test_selectors_are_the_bindings_own(binding):
    known = set(re.findall(r'r\(\s*b"\w+",\s*b"([\w:]+)"', binding))
    assert len(known) > 800
    for name, value in classes():
        if name in CLASSES or name in STRUCTURES:
            continue
        selectors = {n for n in vars(value) if not n.startswith("_")} - OWN_NAMES.get(name, set())
        assert {s.replace("_", ":") for s in selectors} <= known, name


def test_methods_take_as_many_arguments_as_their_names_say():
    for _, value in classes():
        for method, function in inspect.getmembers(value, inspect.isfunction):
            if method.endswith("_") and not method.startswith("_"):
                assert len(inspect.signature(function).parameters) - 1 == method.count("_"), method


def test_values_are_the_bindings_own(binding):
    text = "".join(re.findall(r'enums = """(.*?)"""', binding, re.DOTALL))
    known = dict(re.findall(r"\$?(\w+)@(-?\d+)", text))
    ours = {n: str(v) for n, v in vars(constants).items() if n.startswith("MTL")}
    assert {name: known.get(name) for name in ours} == ours
