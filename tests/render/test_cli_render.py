"""`viscoil render` and `viscoil gallery` as they are typed."""

import json
import sys

import pytest
from PIL import Image
from scenery import small_run

from viscoil.cli import main, renders
from viscoil.render import variant


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small_run(tmp_path / "run")


def typed(capsys, *words):
    """Exit code, stdout and stderr of one command."""
    code = main(list(words))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_last_frame_by_default(run, capsys):
    code, out, err = typed(capsys, "render", "run", "--fast", "--size", "96x54")
    assert code == 0
    assert [file.name for file in (run.path / "render").iterdir()] == ["frame_00002.png"]
    assert "1 picture made in" in out and "surface" in out and "frame_00002.png" in out
    assert "picture 1/1  frame 2" in err


def row(total):
    return {"frame": 1, "trace": total, "total": total}


def test_the_first_of_many_traced_pictures_tells_how_long_all_take(capsys, monkeypatch):
    clock = iter(range(0, 1000, 38))  # s
    monkeypatch.setattr(renders.time, "perf_counter", lambda: next(clock))
    report = renders.Progress(hint="--fast takes a moment")
    report.frame(row(38.0), 1, 149)
    first = capsys.readouterr().err
    assert "note: 38 s a picture: about 1 h 34 min for 149; --fast takes a moment" in first
    report.frame(row(38.0), 2, 149)
    assert "note" not in capsys.readouterr().err, "said once"
    renders.Progress(hint="--fast takes a moment").frame(row(2.0), 1, 149)
    assert "note: 2 s a picture: about 5 min for 149\n" in capsys.readouterr().err, "short enough"
    for hint, count in (("", 149), ("--fast takes a moment", 1)):
        renders.Progress(hint).frame(row(38.0), 1, count)
        assert "note" not in capsys.readouterr().err


def test_at_a_terminal_the_estimate_stands_above_the_bar(capsys, monkeypatch):
    monkeypatch.setattr(renders.show, "is_terminal", lambda stream: True)
    with renders.Progress("--fast takes a moment") as report:
        report.frame(row(38.0), 1, 149)
    assert "note: 38 s a picture: about 1 h 34 min for 149; --fast takes a moment" in capsys.readouterr().err.replace("\n", " ")


def test_film_of_all_frames(run, capsys):
    code, out, _ = typed(capsys, "render", "run", "--fast", "--size", "96x54", "--film", "out/film.webp", "-o", "pictures")
    assert code == 0 and "3 pictures, 50 a second" in out
    with Image.open("out/film.webp") as film:
        assert film.n_frames == 3 and film.size == (96, 54)
    assert len(list((run.path.parent / "pictures").glob("*.png"))) == 3
    words = ["--film", "film.gif", "-o", "pictures", "--fps", "10"]
    code, out, _ = typed(capsys, "render", "run", "--fast", "--size", "96x54", *words)
    assert code == 0 and "3 were up to date" in out and "10 a second" in out


def test_camera_look_and_frames(run, capsys):
    words = ["render", "run", "--fast", "--size", "96x54", "--frames", "0:1", "--look", "clay", "--azimuth", "-40"]
    assert typed(capsys, *words, "--elevation", "10", "--zoom", "1.2", "--draw", "particles")[0] == 0
    assert typed(capsys, *words, "--camera", "-2,1,3 -> 0.5,0.2,0.2")[0] == 0
    assert len(list((run.path / "render").glob("*.png"))) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--look", "hony"], 'Did you mean "honey"'), (["--size", "big"], "expected WIDTHxHEIGHT"),
        (["--film", "film.avi"], ".mp4, .webp or .gif"), (["--frames", "7"], "there is no frame 7"),
        (["--camera", "here"], "expected where it stands"), (["--draw", "balls"], "Expected one of: surface"),
        (["--elevation", "95"], "-89.9 to 89.9"), (["--fps", "0"], "--fps: expected"), (["--zoom", "0"], "--zoom: expected"),
        (["--samples", "0"], "samples: expected"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(run, capsys, words, message):
    code, out, err = typed(capsys, "render", "run", "--fast", *words)
    assert code == 2 and message in err and "Traceback" not in err and not out


@pytest.mark.parametrize(
    ("module", "words", "extra"),
    [
        ("mitsuba", [], "render"), ("pyoidn", [], "render"), ("imageio_ffmpeg", ["--fast", "--film", "film.mp4"], "film"),
        ("pysplashsurf", ["--fast", "--draw", "surface"], "surface"),
    ],
)  # fmt: skip
def test_missing_packages_are_named(run, capsys, monkeypatch, module, words, extra):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(variant, "_started", variant.Variant("scalar_rgb"))
    code, _, err = typed(capsys, "render", "run", *words)
    assert code == 2 and f'pip install ".[{extra}]"' in err


def test_without_anything_installed_there_is_still_a_picture(run, capsys, monkeypatch):
    for module in ("mitsuba", "pyoidn", "imageio_ffmpeg", "pysplashsurf"):
        monkeypatch.setitem(sys.modules, module, None)
    code, out, _ = typed(capsys, "render", "run", "--fast", "--size", "96x54", "--film", "film.webp")
    assert code == 0 and "3 pictures made" in out


def test_help_has_examples(capsys):
    for command in ("render", "gallery"):
        code, out, _ = typed(capsys, command, "--help")
        assert code == 0 and f"viscoil {command}" in out and "Examples:" in out


def test_bench_of_quick_pictures(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = typed(
        capsys, "bench", "render", "--fast", "--particles", "3000", "--rounds", "1", "--size", "96x54", "--json", "times.json"
    )
    assert code == 0 and "Seconds per picture" in out
    rows = json.loads((tmp_path / "times.json").read_text())["rows"]
    assert [row["look"] for row in rows] == ["cream", "honey", "particles", "ellipsoids"]
    assert all(0 < row["draw"] <= row["total"] for row in rows)
    assert typed(capsys, "bench", "render", "--particles", "3")[0] == 2


def test_gallery_of_looks(capsys, tmp_path, monkeypatch):
    from viscoil.render import sheet

    monkeypatch.setattr(sheet, "SHOWN", ("honey", "ellipsoids"))
    monkeypatch.setattr(sheet, "TILE", (80, 80))
    monkeypatch.setattr(sheet.write_sheet, "__defaults__", (None, ("honey", "particles"), 0.002))
    code, _, _ = typed(capsys, "gallery", "--looks", str(tmp_path / "looks.jpg"), "--fast")
    assert code == 0
    with Image.open(tmp_path / "looks.jpg") as image:
        assert image.size == (160, 80)
