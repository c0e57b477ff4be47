"""What a run says while it runs."""

import numpy as np

from viscoil.cli.progress import Report
from viscoil.io.frame import Frame


def test_a_line_names_the_step_and_what_limits_it(capsys):
    report = Report()
    report.start(-1, 10)
    frame = Frame(index=3, time=0.048, step=12, fields={"position": np.zeros((5, 3), np.float32)})
    report.frame(frame, {"dt": 0.002, "limited_by": "CFL 0.4 at 4 m/s", "density_mean": 1.004})
    line = capsys.readouterr().err
    assert "frame 3/10" in line
    assert "5 particles" in line
    assert "Δt 2 ms (CFL 0.4 at 4 m/s)" in line
    assert "density error +0.40 %" in line
    assert "ETA" in line


def test_no_density_is_told_while_nobody_is_inside_the_fluid(capsys):
    report = Report()
    report.start(-1, 10)
    frame = Frame(index=0, time=0.0, step=0, fields={"position": np.zeros((5, 3), np.float32)})
    report.frame(frame, {"density_mean": 0.0})
    line = capsys.readouterr().err
    assert "5 particles" in line and "density" not in line
