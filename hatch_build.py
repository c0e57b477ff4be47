"""Compiles the CPU's passes into the wheel where there is a C++ compiler; without one the wheel is plain Python.

``VISCOIL_NATIVE=0`` leaves them out, ``VISCOIL_NATIVE=1`` makes a failure to build them an error.
"""

import importlib.util
import os
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _builder(root: str):
    path = Path(root) / "src" / "viscoil" / "native" / "build.py"
    spec = importlib.util.spec_from_file_location("viscoil_native_build", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NativeHook(BuildHookInterface):
    """Runs for wheels and for editable installs, which load the library from the source tree."""

    def initialize(self, version, build_data):
        wanted = os.environ.get("VISCOIL_NATIVE", "")
        if wanted == "0":
            return
        builder = _builder(self.root)
        library, why = builder.build(builder.SOURCES)
        if library is None:
            if wanted == "1":
                raise RuntimeError(f"the CPU's passes were not built: {why}")
            self.app.display_warning(f"without the CPU's compiled passes, which are optional: {why}")
            return
        self.app.display_info(f"the CPU's passes were compiled by {why}")
        # No Python interface inside: one wheel serves all versions of Python, on this kind of machine.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(f"src/viscoil/native/{builder.LIBRARY}")
