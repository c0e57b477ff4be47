"""Films: they decode to as many pictures of the right size as went in, keep time, and appear only when they are whole."""

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from viscoil.errors import MissingExtra, SceneError
from viscoil.render.film import write_film

SIZE = (161, 91)  # odd on purpose


def pictures(count=12, size=SIZE):
    for k in range(count):
        image = np.full((size[1], size[0], 3), 230, np.uint8)
        image[20:60, 5 + 8 * k : 35 + 8 * k] = (200, 30, 20)
        yield image


def centre(image):
    """Column of the red square."""
    red = (image[..., 0].astype(int) - image[..., 1] > 80) & (image[..., 0].astype(int) - image[..., 2] > 80)
    return np.argwhere(red)[:, 1].mean()


def test_mp4_decodes(tmp_path):
    path = write_film(pictures(), tmp_path / "film.mp4", fps=25)
    assert imageio_ffmpeg.count_frames_and_secs(str(path))[0] == 12
    reader = imageio_ffmpeg.read_frames(str(path))
    facts = next(reader)
    assert facts["size"] == facts["source_size"] == (160, 90), "made even"
    assert facts["codec"] == "h264" and facts["pix_fmt"].startswith("yuv420p") and facts["fps"] == 25
    shown = [np.frombuffer(raw, np.uint8).reshape(90, 160, 3) for raw in reader]
    assert len(shown) == 12
    assert centre(shown[0]) == pytest.approx(19.5, abs=1) and centre(shown[-1]) == pytest.approx(107.5, abs=1)
    assert np.abs(shown[0][:15].astype(int) - 230).mean() < 3, "colours survive"


@pytest.mark.parametrize("kind", [".webp", ".gif"])
def test_animated_images_keep_time(tmp_path, kind):
    path = write_film(pictures(), tmp_path / f"film{kind}", fps=62.5)
    with Image.open(path) as film:
        assert film.size == SIZE and film.n_frames == 6, "browsers slow down what is faster than 50 a second"
        total, places = 0, []
        for k in range(film.n_frames):
            film.seek(k)
            film.load()
            total += film.info["duration"]
            places.append(centre(np.asarray(film.convert("RGB"))))
        assert film.info["loop"] == 0
    assert total == pytest.approx(12 / 62.5 * 1000, abs=10)
    assert np.allclose(np.diff(places), 16, atol=1.5)


def test_files_arrays_and_images_are_the_same_to_it(tmp_path):
    arrays = list(pictures(2))
    Image.fromarray(arrays[0]).save(tmp_path / "one.png")
    path = write_film([tmp_path / "one.png", Image.fromarray(arrays[1])], tmp_path / "film.mp4", fps=2.5)
    assert imageio_ffmpeg.count_frames_and_secs(str(path)) == (2, pytest.approx(0.8))


@pytest.mark.parametrize("kind", [".mp4", ".webp", ".gif"])
def test_a_failure_leaves_the_old_film_and_nothing_else(tmp_path, kind):
    out = tmp_path / f"film{kind}"
    write_film(pictures(3), out, fps=10)
    before = out.read_bytes()

    def broken():
        yield from pictures(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_film(broken(), out, fps=10)
    assert out.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [out.name]


def test_what_cannot_be_a_film(tmp_path, monkeypatch):
    for name, words in (("film.avi", r"\.mp4, \.webp or \.gif"), ("film", "got \"film\"")):
        with pytest.raises(SceneError, match=words):
            write_film(pictures(2), tmp_path / name)
    with pytest.raises(SceneError, match="at least one picture"):
        write_film([], tmp_path / "film.gif")
    with pytest.raises(SceneError, match="positive number"):
        write_film(pictures(2), tmp_path / "film.gif", fps=0)
    with pytest.raises(SceneError, match="picture 1 of the film is 10x10, the first 161x91"):
        write_film([next(pictures()), np.zeros((10, 10, 3), np.uint8)], tmp_path / "film.gif")
    assert not list(tmp_path.iterdir())
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtra, match=r'pip install "\.\[film\]"'):
        write_film(pictures(2), tmp_path / "film.mp4")
    assert write_film(pictures(2), tmp_path / "film.webp").is_file(), "needs nothing"
