"""The live studio: a simulation in its own process, seen and steered in the browser.

>>> from viscoil.studio import Studio
>>> with Studio("dam_break") as studio:
...     studio.play()
...     studio.wait(lambda status: status.time > 1.0)
...     studio.set("gravity.strength", 20.0)
"""

from importlib import import_module
from typing import Any

__all__ = ["Studio"]


def __getattr__(name: str) -> Any:
    if name == "Studio":  # here: looking at the package must not load the web server
        return import_module("viscoil.studio.app").Studio
    raise AttributeError(name)
