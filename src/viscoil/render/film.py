"""Pictures to films: mp4 through the encoder that comes with imageio-ffmpeg, animated webp and gif through Pillow."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from viscoil.errors import RunFolderError, SceneError
from viscoil.extras import require
from viscoil.io.atomic import explain
from viscoil.keys import did_you_mean

FORMATS = (".mp4", ".webp", ".gif")
FASTEST = 50.0  # pictures a second of animated images: browsers slow down what is faster
SHARPNESS = 17  # x264's constant rate factor: lower is larger and better, 17 looks like the pictures

Picture = str | os.PathLike | np.ndarray | Image.Image


def check_name(out: str | Path) -> Path:
    """``out`` if a film can be written there, otherwise SceneError."""
    path = Path(out)
    if path.suffix.lower() not in FORMATS:
        meant = did_you_mean(path.suffix.lower(), FORMATS) if path.suffix else ""
        raise SceneError(f'a film is written as .mp4, .webp or .gif; got "{path.name}".{meant}', key="film")
    if path.suffix.lower() == ".mp4":
        require("imageio_ffmpeg", "to write .mp4 films (.webp and .gif need nothing)")
    return path


def write_film(
    images: Iterable[Picture], out: str | Path, fps: float = 30.0, progress: Callable[[int], None] | None = None
) -> Path:
    """Write ``images`` (files, arrays (height, width, 3) of bytes, or Pillow images, all of one size) as a film.

    .mp4 (H.264, plays everywhere), .webp or .gif (play forever). A film plays at ``fps`` pictures a second; faster than
    50, animated images leave some out to keep time. The file appears when it is complete. ``progress`` is called with
    the number of pictures so far.
    """
    path = check_name(out)
    if not fps > 0:
        raise SceneError(f"a film needs a positive number of pictures a second; got {fps:g}", key="fps")
    pictures = _same_size(_counted((_opened(image) for image in images), progress))
    first = next(pictures, None)
    if first is None:
        raise SceneError("a film needs at least one picture.")
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix.lower()}")
    write = _mp4 if path.suffix.lower() == ".mp4" else _animated
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary, first, pictures, fps)
        os.replace(temporary, path)
    except OSError as error:
        raise RunFolderError(explain(error, path)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return path


def _opened(image: Picture) -> Image.Image:
    if isinstance(image, np.ndarray):
        return Image.fromarray(image).convert("RGB")
    if isinstance(image, Image.Image):
        return image.convert("RGB")
    with Image.open(image) as opened:
        return opened.convert("RGB")


def _counted(images: Iterator[Image.Image], progress: Callable[[int], None] | None) -> Iterator[Image.Image]:
    for number, image in enumerate(images, start=1):
        yield image
        if progress:
            progress(number)


def _same_size(images: Iterator[Image.Image]) -> Iterator[Image.Image]:
    size = None
    for number, image in enumerate(images):
        size = size or image.size
        if image.size != size:
            raise SceneError(f"picture {number} of the film is {image.size[0]}x{image.size[1]}, the first {size[0]}x{size[1]}")
        yield image


def _mp4(path: Path, first: Image.Image, rest: Iterator[Image.Image], fps: float) -> None:
    """H.264 with colours at half resolution (yuv420p), which every player knows; sizes are made even for it."""
    ffmpeg = require("imageio_ffmpeg", "to write .mp4 films (.webp and .gif need nothing)")
    width, height = (max(2, length - length % 2) for length in first.size)
    size = (width, height)
    options: dict[str, Any] = {
        "fps": fps, "codec": "libx264", "pix_fmt_in": "rgb24", "pix_fmt_out": "yuv420p", "macro_block_size": 1,
        "quality": None, "ffmpeg_log_level": "error",
        "output_params": [
            "-crf", str(SHARPNESS), "-preset", "medium", "-movflags", "+faststart",
            "-vf", "scale=out_color_matrix=bt709", "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709",
        ],
    }  # fmt: skip
    writer = ffmpeg.write_frames(str(path), size, **options)
    writer.send(None)
    try:
        for image in _chain(first, rest):
            if image.size != size:
                image = image.crop((0, 0, width, height)) if min(image.size) >= 2 else image.resize(size)
            writer.send(np.ascontiguousarray(image))
    finally:
        writer.close()
    if not path.is_file() or not path.stat().st_size:
        raise RunFolderError(f"the encoder wrote no film: {path.name}")


def _animated(path: Path, first: Image.Image, rest: Iterator[Image.Image], fps: float) -> None:
    """Pillow's animations; their durations are whole milliseconds (gif: hundredths), so rounding is carried along."""
    gif = path.suffix == ".gif"
    every = max(1, int(np.ceil(fps / FASTEST)))
    shown = [image for number, image in enumerate(_chain(first, rest)) if number % every == 0]
    unit = 10 if gif else 1
    ticks = np.round(1000 / unit * every * np.arange(len(shown) + 1) / fps).astype(int) * unit
    durations = np.maximum(np.diff(ticks), unit).tolist()
    options: dict[str, Any] = {"optimize": True} if gif else {"quality": 82, "method": 4}
    if gif:
        shown = [image.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.FLOYDSTEINBERG) for image in shown]
    shown[0].save(path, save_all=True, append_images=shown[1:], duration=durations, loop=0, **options)


def _chain(first: Image.Image, rest: Iterator[Image.Image]) -> Iterator[Image.Image]:
    yield first
    yield from rest
