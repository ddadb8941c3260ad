"""Compiles the kernels when the wheel is built."""

from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

import metalloid as mtl

#: Processors and GPUs on which the wheel will run: one wheel for all of them.
TARGETS = ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:aarch64", "cuda:sm_75"]


class CompileKernels(BuildHookInterface):
    """Adds the bundle."""

    def initialize(self, version, build_data):
        """Compile the kernels to the file that pyproject.toml lists as an artifact."""
        folder = Path(self.root, "src", "ripples")
        mtl.save_library(folder / "kernels.mtlb", path=folder / "kernels.metal", targets=TARGETS)


class SameVersion(MetadataHookInterface):
    """Bundles run with the version of metalloid that has compiled them."""

    def update(self, metadata):
        """Add the dependencies, which pyproject.toml calls dynamic."""
        metadata["dependencies"] = ["numpy", f"metalloid=={mtl.__version__}"]
