"""Every validation case holds, fails with its fault put in, and can be drawn."""

import math
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from viscoil import native, validation
from viscoil.validation import CASES, Check, Outcome, draw, parity
from viscoil.validation.case import results

OUTCOMES: dict[str, Outcome] = {}


def outcome_of(name: str) -> Outcome:
    """The quick version, simulated once for all tests here."""
    if name not in OUTCOMES:
        OUTCOMES[name] = CASES[name].run(quick=True, device="cpu")
    return OUTCOMES[name]


@pytest.mark.parametrize("name", CASES)
def test_case_holds(name):
    for check in outcome_of(name).checks:
        expected = f"{check.relation} {check.reference:g} ± {check.tolerance:g}"
        assert check.ok, f"{check.quantity}: {check.measured:g}, expected {expected}"


@pytest.mark.parametrize("name", CASES)
def test_case_fails_with_its_fault(name):
    outcome = CASES[name].run(quick=True, device="cpu", mutated=True)
    assert not all(check.ok for check in outcome.checks), f"{CASES[name].mutation.name}: nothing noticed it"


@pytest.mark.parametrize("name", CASES)
def test_case_can_be_drawn(name, tmp_path):
    from PIL import Image

    path = draw(CASES[name], outcome_of(name), tmp_path / "new folder")
    assert path == tmp_path / "new folder" / f"{name}.png"
    with Image.open(path) as picture:
        colours = picture.convert("RGB").getcolors(1 << 20)
        assert picture.width > 600 and len(colours) > 20


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="the load of records is made for x86")
def test_parity_without_compiled_passes_compares_two_ways_to_read_neighbours(monkeypatch):
    load = parity.Load("pbf_drop", parity.SMALL, 4.0, lasting=False)
    monkeypatch.setattr(parity, "loads", lambda quick, gpu: [load])
    with native.use(False):
        (check,) = CASES["parity"].run(quick=True, device="cpu").checks
    assert check.ok and check.measured > 0, "and their rounding differs"


def test_registry_is_complete():
    folder = Path(validation.__file__).parent
    assert set(CASES) <= {path.stem for path in folder.glob("*.py")}, "a case is called like its file"
    asked_for = {"free_fall", "momentum", "column", "dam_break_front", "pbf_large_step", "convergence", "clumping", "vorticity"}
    assert asked_for <= set(CASES)
    for name, case in CASES.items():
        assert case.name == name and case.measures and case.source and case.mutation.name


def test_rows_of_the_table():
    rows = results(CASES["free_fall"], outcome_of("free_fall"))
    assert [row.ok for row in rows] == [True] * len(rows) and len(rows) == len(outcome_of("free_fall").checks)
    assert len({row.case for row in rows}) == len(rows), "every row has a name of its own"
    assert all(row.name == "free_fall" and row.case.startswith("free_fall: ") and row.source for row in rows)


def test_run_writes_plots(tmp_path):
    rows = validation.run(["free_fall"], quick=True, device="cpu", plots=tmp_path)
    assert all(row.ok for row in rows) and Path(rows[0].plot).is_file()


@pytest.mark.parametrize(
    ("check", "ok"),
    [
        (Check("a", 1.1, 1.0, 0.2), True),
        (Check("a", 1.3, 1.0, 0.2), False),
        (Check("a", 0.7, 1.0, 0.2), False),
        (Check("a", 0.0, 1.0, 0.0, "at most"), True),
        (Check("a", 1.1, 1.0, 0.05, "at most"), False),
        (Check("a", 5.0, 1.0, 0.0, "at least"), True),
        (Check("a", 0.9, 1.0, 0.05, "at least"), False),
        (Check("a", math.nan, 1.0, 1.0, "at most"), False),
        (Check("a", math.inf, 1.0, 1.0, "at least"), False),
    ],
)
def test_checks(check, ok):
    assert check.ok is ok


def test_looking_at_the_table_needs_no_compiler():
    program = (
        "import sys, viscoil.validation as v; "
        "print(len(v.CASES), [m for m in ('quadrants', 'matplotlib', 'pydantic') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.split(" ", 1) == [str(len(CASES)), "[]\n"]
