"""The record of what changed in the numbers of ``viscoil validate``: what is told, what is small, what needs a reason."""

import importlib.util
import json
import math
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("validation_change", ROOT / "benchmarks" / "validation_change.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(**measured):
    """Rows as ``viscoil validate --json`` prints them: near 1 within 0.1, an error that may be 0.01, a limit of zero."""
    asked = {"near": ("near", 1.0, 0.1), "error": ("at most", 0.01, 0.0), "leaks": ("at most", 0.0, 0.0)}
    return [
        {
            "name": "case", "quantity": name, "relation": asked[name][0], "reference": asked[name][1],
            "tolerance": asked[name][2], "measured": value, "ok": value <= 1.1,
        }
        for name, value in measured.items()
    ]  # fmt: skip


def told(script, tmp_path, before, after, *more):
    """(exit code, record)."""
    for name, rows in (("before", before), ("after", after)):
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    files = ("--before", str(tmp_path / "before.json"), "--after", str(tmp_path / "after.json"))
    code = script.main([*files, "--output", str(tmp_path / "record.json"), *more])
    return code, json.loads((tmp_path / "record.json").read_text())


def test_what_stays_needs_no_reason(script, tmp_path, capsys):
    before = numbers(near=1.05, error=1e-7, leaks=0.0)
    code, found = told(script, tmp_path, before, numbers(near=1.052, error=3e-7, leaks=0.0))
    assert code == 0 and [script.noticeable(row) for row in found["rows"]] == [False] * 3
    assert "3 numbers of 1 cases, 0 outside" in (text := capsys.readouterr().out) and "none by more." in text


def test_what_changed_needs_one(script, tmp_path, capsys):
    before, after = numbers(near=1.0, error=1e-3, leaks=0.0), numbers(near=1.05, error=2e-3, leaks=1e-9)
    code, found = told(script, tmp_path, before, after)
    assert code == 1 and [script.noticeable(row) for row in found["rows"]] == [True] * 3
    assert script.room(found["rows"][0]) == pytest.approx(0.5) and script.room(found["rows"][1]) == pytest.approx(0.1)
    assert script.change(found["rows"][2]) == math.inf
    code, found = told(script, tmp_path, before, after, "--reason", "case=another default")
    assert code == 0 and "- *case*: another default" in capsys.readouterr().out
    code, found = told(script, tmp_path, before, after)
    assert code == 0 and found["reasons"] == {"case": "another default"}, "reasons are kept"


def test_failures_and_new_questions_are_told(script, tmp_path, capsys):
    code, found = told(script, tmp_path, numbers(near=1.11, error=0.0), numbers(near=1.11, leaks=0.0))
    assert code == 1 and script.noticeable(found["rows"][0])
    assert found["only_after"] == ["case: leaks"] and found["only_before"] == ["case: error"]
    assert "Asked anew: case: leaks" in capsys.readouterr().out


def test_the_record_of_this_repository_is_whole(script):
    found = json.loads(script.RECORD.read_text(encoding="utf-8"))
    assert len(found["rows"]) > 200 and all(row["ok"] for row in found["rows"])
    assert {row["name"] for row in found["rows"] if script.noticeable(row)} <= set(found["reasons"])


def test_bars_do_not_split_cells(script):
    row = {**numbers(near=1.0)[0], "quantity": "|A|", "before": 1.0, "after": 1.05, "ok": True}
    found = {"before": "a", "after": "b", "rows": [row], "reasons": {}, "only_before": [], "only_after": []}
    assert "| \\|A\\| |" in script.table(found)
