"""Optional packages: loaded when something needs them, with one clear sentence when they are missing."""

from importlib import import_module
from typing import Any

from viscoil.errors import MissingExtra

# Module -> the extra of pyproject.toml that brings it.
EXTRAS = {
    "pysplashsurf": "surface",
    "mitsuba": "render",
    "pyoidn": "render",
    "imageio_ffmpeg": "film",
    "viser": "studio",
    "pxr": "usd",
    "alembic3d": "alembic",
    "mujoco": "",  # comes with viscoil itself, as mujoco-core
}


def require(module: str, purpose: str, attribute: str | None = None) -> Any:
    """The optional ``module`` (or dotted submodule), or MissingExtra naming the pip command; ``purpose``: "to do …"."""
    package = module.split(".")[0]
    try:
        found = import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == package:
            raise MissingExtra(package, EXTRAS[package], purpose) from None
        raise MissingExtra(package, EXTRAS[package], purpose, reason=str(error)) from error
    return getattr(found, attribute) if attribute else found
