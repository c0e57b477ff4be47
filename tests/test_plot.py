"""The plot of a run shows what was measured and copes with what was not."""

import sys

import numpy as np
import pytest
from PIL import Image

from viscoil.errors import RunFolderError
from viscoil.io.run import Run
from viscoil.view.plot import plot_run


def make_run(path, rows: int, **columns) -> Run:
    with Run.create(path, 'title = "Dam break"\nspacing = 0.1\n') as run:
        for index in range(rows):
            values = {name: value(index) if callable(value) else value for name, value in columns.items()}
            run.write_metrics({"frame": index, "time": index / 60} | values)
    return run


def test_plot_shows_the_metrics(tmp_path):
    stages = {f"seconds_stage{k}": 0.01 for k in range(12)}
    run = make_run(
        tmp_path / "run", 20, density_mean=1.0, density_max=lambda i: 1.1 - i / 1000, particles=lambda i: 100 + i,
        kinetic_energy=lambda i: np.sin(i / 5) ** 2, seconds=0.2, limited_by="cfl", **stages,
    )
    path = plot_run(run, tmp_path / "plots" / "run.png")
    image = np.asarray(Image.open(path).convert("RGB")).astype(int)
    assert image.shape[1] >= 1000
    blue = (np.abs(image - [0x2A, 0x6F, 0xBB]).sum(axis=2) < 30).sum()
    orange = (np.abs(image - [0xE0, 0x7B, 0x39]).sum(axis=2) < 30).sum()
    assert blue > 1000 and orange > 300, "curves are drawn"
    flat = make_run(tmp_path / "flat", 20, density_mean=1.0, density_max=1.1, particles=100, kinetic_energy=1.0)
    other = np.asarray(Image.open(plot_run(flat, tmp_path / "flat.png")).convert("RGB")).astype(int)
    assert not np.array_equal(image, other)


@pytest.mark.parametrize("rows, columns", [(1, {"particles": 3}), (3, {}), (2, {"density_mean": float("nan")})])
def test_plot_copes_with_little(tmp_path, rows, columns):
    assert plot_run(make_run(tmp_path / "run", rows, **columns), tmp_path / "plot.png").stat().st_size > 5000


def test_plot_says_when_there_is_nothing(tmp_path):
    with pytest.raises(RunFolderError, match="no metrics"):
        plot_run(make_run(tmp_path / "run", 0), tmp_path / "plot.png")
    with pytest.raises(RunFolderError, match=r"plot\.xyz"):
        plot_run(make_run(tmp_path / "other", 2), tmp_path / "plot.xyz")


def test_plot_leaves_pyplot_alone(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    plot_run(make_run(tmp_path / "run", 2, particles=5), tmp_path / "plot.png")
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_means_of_nobody_leave_a_gap(tmp_path):
    """Where no particle is inside the fluid there is no mean: an empty field in the table, no curve in the picture."""
    nothing = float("nan")
    rows = {"density_max": 1.2, "particles": 5, "kinetic_energy": 1.0}
    late = make_run(tmp_path / "late", 20, density_mean=lambda i: nothing if i < 10 else 1.0, **rows)
    lines = (late.path / "metrics.csv").read_text().splitlines()
    assert "nan" not in "".join(lines).lower() and lines[1].split(",")[2] == "" and lines[-1].split(",")[2] == "1.0"
    found = late.metrics()["density_mean"]
    assert np.isnan(found[:10]).all() and (found[10:] == 1).all()
    blue = {}
    for name, run in (("late", late), ("whole", make_run(tmp_path / "whole", 20, density_mean=1.0, **rows))):
        image = np.asarray(Image.open(plot_run(run, tmp_path / f"{name}.png")).convert("RGB")).astype(int)
        panel = image[: len(image) // 2, : image.shape[1] // 2]  # density is the first of four
        blue[name] = (np.abs(panel - [0x2A, 0x6F, 0xBB]).sum(axis=2) < 30).any(axis=0).sum()  # columns with some of the curve
    assert 0.4 * blue["whole"] < blue["late"] < 0.6 * blue["whole"], "half of it is not there"
