"""A finished picture, what it was made with, and its file: a PNG that remembers how it was made."""

import io
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, PngImagePlugin

from viscoil.io.atomic import write_atomic

STAMP = "viscoil"  # keyword of the text in the PNG


@dataclass
class Picture:
    """sRGB (height, width, 3) uint8, and the seconds each part took."""

    image: np.ndarray
    seconds: dict[str, float] = field(default_factory=dict)

    def save(self, path: Path, stamp: str = "") -> Path:
        """Write a PNG so that it is either whole or not there; ``stamp`` says what it was made from."""
        text = PngImagePlugin.PngInfo()
        text.add_text(STAMP, stamp)
        buffer = io.BytesIO()
        Image.fromarray(self.image).save(buffer, "png", pnginfo=text, compress_level=4)
        return write_atomic(path, buffer.getbuffer())


def stamp_of(path: Path) -> str | None:
    """What a picture says it was made from; None when there is no such picture."""
    try:
        with Image.open(path) as image:
            return str(getattr(image, "text", {}).get(STAMP, ""))
    except (OSError, ValueError, SyntaxError):
        return None
