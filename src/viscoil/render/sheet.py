"""A sheet of looks: the same coiling rope in every one of them, with names."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from viscoil.looks import LOOKS, PARTICLE_LOOKS
from viscoil.material import PRESETS
from viscoil.render.gallery import write_small
from viscoil.render.job import Settings, draw, scenery
from viscoil.render.specimen import coiling_rope
from viscoil.view.camera import View

SHOWN = ("honey", "syrup", "gel", "water", "cream", "paint", "chocolate", "clay", "slime", "dough", "lava", "ellipsoids")
COLUMNS = 4
TILE = (400, 400)
LIMIT = 250_000  # bytes
VIEW = View(azimuth=28.0, elevation=20.0, zoom=1.0, field_of_view=28.0)
GEL = (0.50, 0.77, 0.79)  # colour of what has no preset of its own name


def write_sheet(path: Path, settings: Settings | None = None, shown: tuple[str, ...] = SHOWN, spacing: float = 0.00085) -> Path:
    """Draw the coiling rope in all looks ``shown`` and write them as one JPEG."""
    settings = replace(settings or Settings(), size=TILE, view=VIEW)
    tiles = [_tile(name, settings, spacing) for name in shown]
    rows = -(-len(tiles) // COLUMNS)
    sheet = Image.new("RGB", (TILE[0] * min(COLUMNS, len(tiles)), TILE[1] * rows), "white")
    for number, tile in enumerate(tiles):
        sheet.paste(tile, (number % COLUMNS * TILE[0], number // COLUMNS * TILE[1]))
    return write_small(np.asarray(sheet), path, limit=LIMIT)


def _tile(name: str, settings: Settings, spacing: float) -> Image.Image:
    """One look and its name."""
    colour = PRESETS[name].colour if name in PRESETS else GEL
    look = name if name in LOOKS else "gel"
    frame = coiling_rope(spacing, {"name": name, "colour": colour, "look": look, "density": 1000.0})
    chosen = replace(settings, look=name if name in PARTICLE_LOOKS else None)
    image = Image.fromarray(draw(frame, chosen, scenery([frame], chosen)).image)
    pen = ImageDraw.Draw(image)
    pen.text((16, TILE[1] - 34), name, fill=(60, 62, 66), font=ImageFont.load_default(18))
    return image
