"""The command line, mostly in this process; a few commands as a user would start them."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from viscoil.cli import listing, main, show
from viscoil.cli.commands import _repeat_set
from viscoil.looks import LOOKS, PARTICLE_LOOKS
from viscoil.material import PRESETS
from viscoil.scene.load import shipped
from viscoil.solvers import SOLVERS
from viscoil.validation import CASES

COMMANDS = ["list", "check", "run", "cache", "info", "plot", "export", "validate", "bench", "demo", "doctor", "schema", "help"]


def said(capsys, *arguments: str) -> str:
    """What a command that works prints."""
    code = main(list(arguments))
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


def complaint(capsys, *arguments: str) -> str:
    """What a command says about wrong input: one message on stderr, nothing on stdout, exit code 2."""
    code = main(list(arguments))
    captured = capsys.readouterr()
    assert code == 2, captured
    assert captured.err.startswith("error: ") and "Traceback" not in captured.err
    assert captured.out == ""
    return captured.err


def viscoil(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "viscoil", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


# --- help and lists --------------------------------------------------------------------------------------------------
def test_help_names_every_command_and_has_examples(capsys):
    text = said(capsys, "--help")
    for command in COMMANDS:
        assert f"  {command}: " in text
    assert "Examples:\n  viscoil demo" in text


@pytest.mark.parametrize("command", [*COMMANDS, "bench stages"])
def test_every_command_has_help_with_examples(command, capsys):
    text = said(capsys, *command.split(), "--help")
    assert f"Usage: viscoil {command}" in text
    assert f"Examples:\n  viscoil {command.split()[0]}" in text


def test_no_arguments_show_the_help(capsys):
    assert "Usage: viscoil COMMAND" in said(capsys)


def test_piped_help_has_no_boxes_and_no_colours(capsys):
    text = said(capsys, "run", "--help")
    assert not set("╭│╰─\x1b") & set(text)


def test_lists_are_one_name_per_line(capsys):
    assert said(capsys, "list", "scenes").splitlines() == list(shipped())
    assert said(capsys, "list", "materials").splitlines() == list(PRESETS)
    assert said(capsys, "list", "solvers").splitlines() == list(SOLVERS)
    looks = [*LOOKS, *PARTICLE_LOOKS]
    assert said(capsys, "list", "looks").splitlines() == looks
    cases = said(capsys, "list", "cases").splitlines()
    assert cases == list(CASES)
    kinds = {"scenes": shipped(), "materials": PRESETS, "solvers": SOLVERS, "looks": looks, "cases": cases}
    every = [line for kind, names in kinds.items() for line in (f"{kind}:", *(f"  {name}" for name in names))]
    assert said(capsys, "list").splitlines() == every, "what is what can be told apart"


def test_cases_are_listed_with_what_they_measure():
    """Read from their files without importing them, and the same as imported."""
    assert listing.cases() == sorted((case.name, case.measures) for case in CASES.values())


@pytest.mark.parametrize("value, unit, text", [
    (0.0123, "m", "12.3 mm"), (0.0, "m", "0 m"), (59.99999, "s", "1 min"), (0.99999, "m", "1 m"), (2.5e-7, "m³", "250 µl"),
    (0.02353, "%", "2.353 %"), (123456789, "", "123,456,789"), (1234.5678, "", "1,235"), (1.02, "of rest", "1.02 of rest"),
    (1e-12, "J", "0.001 nJ"), ([0.0, 0.1939, -2e-7], "m", "0, 193.9, 0 mm"), ("as asked", "s", "as asked"),
    (np.int64(7), "", "7"), (np.float64(-0.0123456), "m/s", "-12.35 mm/s"), (float("inf"), "m", "inf m"),
])  # fmt: skip
def test_quantities_as_people_read_them(value, unit, text):
    assert show.quantity(value, unit) == text


def test_at_a_terminal_lists_carry_summaries(capsys, monkeypatch):
    monkeypatch.setattr(show, "is_terminal", lambda stream=None: True)
    text = said(capsys, "list", "materials")
    assert "density 1420 kg/m³, viscosity 10 Pa s" in " ".join(text.split())


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["run", "--help"], ["help"], ["help", "run"]])
def test_help_and_lists_load_neither_kernels_nor_models(arguments):
    code = (
        "import sys\nfrom viscoil.cli import main\n"
        f"main({arguments!r})\n"
        "heavy = {'quadrants', 'numpy', 'pydantic', 'h5py', 'matplotlib', 'trimesh'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_version(capsys):
    assert said(capsys, "--version").strip() == "0.1.0"


# --- check and schema ------------------------------------------------------------------------------------------------
def test_check_describes_the_scene(capsys):
    text = said(capsys, "check", "dam_break")
    assert text.splitlines()[-1] == "ok"
    assert "particles" in text and "pbf" in text and "water" in text


def test_check_takes_settings(capsys):
    assert "20 frames" in said(capsys, "check", "dam_break", "--set", "time.frames=20", "fluid.0.material=honey")
    assert "honey" in said(capsys, "check", "dam_break", "--set", "time.frames=20", "--set", "fluid.0.material=honey")


def test_check_says_what_the_solver_cannot_do(capsys):
    text = said(capsys, "check", "dam_break", "--set", "fluid.0.material=jelly")
    assert "note: pbf cannot honour everything about jelly: modulus = 2000 Pa has no effect" in text


def test_set_may_be_followed_by_several_settings():
    assert _repeat_set(["run", "x", "--set", "a=1", "b.0.c=2", "-o", "d=3"]) == [
        "run", "x", "--set", "a=1", "--set", "b.0.c=2", "-o", "d=3",
    ]  # fmt: skip
    assert _repeat_set(["run", "--set", "a=1", "scene"]) == ["run", "--set", "a=1", "scene"]


def test_schema_is_json(capsys):
    schema = json.loads(said(capsys, "schema"))
    assert schema["properties"]["spacing"] and schema["properties"]["profiles"]


def test_help_in_a_pipe_does_not_break_lines(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    check = "  check: Check a scene without running it: every key, its size, what the solver cannot do."
    assert check in said(capsys, "--help").splitlines()
    assert "\n  --frames STR: " in said(capsys, "help", "export") and "; by default all.\n" in said(capsys, "export", "-h")


def test_doctor_runs_a_kernel(capsys):
    text = said(capsys, "doctor", "--device", "cpu")
    rows = dict(line.split("  ", 1) for line in text.splitlines())
    assert rows["device"].strip() == "cpu" and rows["kernel ran"].strip() == "True"


# --- wrong input -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["rum", "dam_break"], ['Unknown command "rum"', 'Did you mean "run"?', "viscoil --help"]),
        (["run"], ["SCENE requires an argument", "viscoil run --help"]),
        (["run", "dam_break", "--frame", "3"], ["--frame", "Did you mean --frames?"]),
        (["run", "dam_break", "--frames", "many"], ["--frames", '"many"', "int"]),
        (["run", "dam_break", "--frames", "-3"], ["--frames: expected a whole number, at least 0; got -3"]),
        (["run", "dam_brake"], ['no scene called "dam_brake"', 'Did you mean "dam_break"?']),
        (["run", "dam_break", "--set", "time.frams=3"], ["--set time.frams", 'Did you mean "frames"?']),
        (["run", "dam_break", "--set", "spacing=1e-7"], ["spacing: about", "more than the limit"]),
        (["run", "dam_break", "--resume", "--overwrite"], ["--resume and --overwrite contradict each other"]),
        (["run", "dam_break", "--resume"], ["no run of dam_break in runs to resume", "-o FOLDER"]),
        (["run", "dam_break", "-o", "nowhere", "--resume"], ["no run to resume in nowhere"]),
        (["check", "."], ["is a directory"]),
        (["check", "dam_break", "--set", "quality=papr"], ["--set quality: no profile called"]),
        (["help", "rum"], ['there is nothing about "rum"', 'Did you mean "run"?']),
        (["list", "case"], ['cannot list "case"', 'Did you mean "cases"?']),
        (["list", "scene"], ['cannot list "scene"', 'Did you mean "scenes"?']),
        (["doctor", "--device", "cpuu"], ["cpuu", "cpu", "cuda"]),
        (["run", "dam_break", "--device", "gpu"], ["gpu", "expected one of auto, cpu, cuda"]),
        (["run", "dam_break", "--threads", "0"], ["--threads: expected a whole number, at least 1; got 0"]),
        (["info", "nowhere"], ["no run folder nowhere"]),
        (["info", "."], ["not a run folder"]),
        (["plot", "nowhere"], ["no run folder nowhere"]),
        (["export", "nowhere", "--to", "vtk"], ["no run folder nowhere"]),
        (["export", "nowhere"], ["--to requires an argument"]),
        (["bench", "stages", "--particles", "lots"], ["--particles: expected counts separated by commas", '"lots"']),
        (["bench", "stages", "--solver", "pdf"], ['no solver "pdf"', 'Did you mean "pbf"?']),
        (["bench", "stages", "--iterations", "0"], ["--iterations: expected a whole number, at least 1"]),
        (["demo", "--frames", "0"], ["--frames: expected a whole number, at least 1"]),
    ],
)
def test_wrong_arguments(arguments, parts, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = complaint(capsys, *arguments)
    for part in parts:
        assert part in text, text
    assert list(tmp_path.iterdir()) == []  # a refused command leaves nothing behind


def test_a_scene_file_is_no_run_folder(capsys, tmp_path):
    (tmp_path / "scene.toml").touch()
    text = complaint(capsys, "info", str(tmp_path / "scene.toml"))
    assert "scene.toml is a file; expected a run folder" in text and "viscoil run" in text


def test_wrong_input_as_a_user_meets_it(tmp_path):
    (tmp_path / "bad.toml").write_text('spacing = "big"\n[[fluid]]\nmaterial = "water"\nshape = { type = "bax" }\n')
    result = viscoil("run", "bad.toml", cwd=tmp_path)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.splitlines()[0] == "error: bad.toml: 2 errors"
    assert (
        '  line 1: spacing: expected a length in metres, greater than 0, e.g. 0.05 or "5 cm"; got "big"'
        in result.stderr
    )
    assert 'line 4: fluid.0.shape.type: unknown type "bax". Did you mean "box"?' in result.stderr
    assert "Traceback" not in result.stderr


def test_unknown_command_as_a_user_meets_it():
    result = viscoil("rum")
    assert result.returncode == 2 and "Traceback" not in result.stderr and 'Did you mean "run"' in result.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        result = subprocess.run(
            [sys.executable, "-m", "viscoil", "list"], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert result.stderr == "" and result.returncode == 0
