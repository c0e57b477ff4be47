"""The measurement of surfaces: what is measured, how it is reported, what does not fit."""

import json

import pytest

import kit  # noqa: F401 - starts the compiler on the CPU
from viscoil.bench import surface as measuring
from viscoil.cli import main
from viscoil.surface.job import COMPACT, memory_needed


@pytest.mark.parametrize("particles", [3000, 40_000])
def test_the_body_has_about_as_many_particles_as_asked_for(particles):
    frame = measuring.body(particles)
    assert len(frame) == pytest.approx(particles, rel=0.12)
    assert {"velocity", "density", "material"} < set(frame.names)
    assert frame.surface("live").volume_ratio() == pytest.approx(1, abs=0.12)


def test_the_command_prints_and_writes_what_it_measured(tmp_path, capsys):
    file = tmp_path / "times.json"
    assert main(["bench", "surface", "--particles", "2000,3000", "--rounds", "1", "--json", str(file)]) == 0
    said = capsys.readouterr()
    assert "2,000 particles" in said.err
    assert "film [s]" in said.out and "ellipsoids [s]" in said.out
    result = json.loads(file.read_text())
    assert [row["film"]["vertices"] > row["live"]["vertices"] > 0 for row in result["rows"]] == [True, True]
    assert all(row[name]["seconds"] > 0 for row in result["rows"] for name in ("film", "live", "ellipsoids"))
    title, columns, rows = measuring.table(result)
    assert result["machine"]["cpu"] in title and len(columns) == len(rows[0]) == 8


def test_what_does_not_fit_into_memory_is_left_out_and_said(monkeypatch):
    monkeypatch.setattr(measuring, "available_memory", lambda: int(memory_needed(2000, "live", COMPACT) * 1.01))
    result = measuring.run([2000], rounds=1)
    (row,) = result["rows"]
    assert "film" not in row and "live" in row
    assert "film needs about" in result["notes"][0] and "are free: left out." in result["notes"][0]
    assert measuring.table(result)[1][1] == "live [s]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--particles", "many"], 'expected counts separated by commas, e.g. 15000,100000; got "many"'),
        (["--qualities", "fillm"], 'quality "fillm" is unknown. Did you mean "film"?'),
        (["--rounds", "0"], "--rounds: expected a whole number, at least 1; got 0"),
        (["--json", "/no/such/folder/x.json"], "there is no folder /no/such/folder"),
    ],
)
def test_wrong_wishes_are_explained(arguments, words, capsys):
    assert main(["bench", "surface", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_help_has_examples(capsys):
    assert main(["bench", "surface", "--help"]) == 0
    assert "Examples:\n  viscoil bench surface\n" in capsys.readouterr().out
