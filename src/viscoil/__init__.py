"""viscoil: viscoelastic fluids made of particles.

Public names are loaded on first use, so that ``import viscoil`` stays fast and needs no GPU library.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The kernel compiler prints a banner when imported; what we print to a pipe is ours alone.
os.environ.setdefault("ENABLE_QUADRANTS_HEADER_PRINT", "False")

_PUBLIC = {
    "load": "viscoil.scene.load",
    "Scene": "viscoil.scene.schema",
    "Simulation": "viscoil.simulate",
    "Material": "viscoil.material",
    "Frame": "viscoil.io.frame",
    "Run": "viscoil.io.run",
}

__all__ = ["Frame", "Material", "Run", "Scene", "Simulation", "load"]

if TYPE_CHECKING:
    from viscoil.io.frame import Frame
    from viscoil.io.run import Run
    from viscoil.material import Material
    from viscoil.scene.load import load
    from viscoil.scene.schema import Scene
    from viscoil.simulate import Simulation


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'viscoil' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
