"""benchmarks/campaign.py measures on a machine that is lent by the minute: nothing that was done is lost, nothing hangs."""

import importlib.util
import json
import sys
import tarfile
from pathlib import Path

import pytest

from viscoil.bench import papers
from viscoil.bench.cases import CASES
from viscoil.cli.commands import app

FILE = Path(__file__).parents[1] / "benchmarks" / "campaign.py"


@pytest.fixture
def campaign():
    spec = importlib.util.spec_from_file_location("campaign", FILE)
    module = sys.modules["campaign"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["campaign"]


def fake(campaign, monkeypatch, **scripts):
    """Parts that are Python scripts."""
    parts = tuple(campaign.Part(name, ("script", text), 2.0) for name, text in scripts.items())
    monkeypatch.setattr(campaign, "PARTS", parts)
    monkeypatch.setattr(campaign, "command_of", lambda part, folder: [sys.executable, "-c", part.command[1]])
    return list(parts)


def test_every_part_is_a_command_that_exists(campaign):
    known = papers.loads()
    for part in campaign.PARTS:
        if part.command[0] == "plain_steps":
            assert part.command[1] in CASES or part.command[1] in known
            continue
        app.parse_args(list(part.command), print_error=False, exit_on_error=False)  # raises where an option is unknown
        if "--loads" in part.command:
            assert set(part.command[part.command.index("--loads") + 1].split(",")) <= set(known)


def test_parts_that_are_unknown_are_refused_by_name(campaign):
    with pytest.raises(SystemExit, match="smal; expected some of right"):
        campaign.chosen("right,smal")
    assert [part.name for part in campaign.chosen("million,right")] == ["right", "million"]


def test_who_fails_or_hangs_does_not_stop_the_others(campaign, monkeypatch, tmp_path, capsys):
    child = tmp_path / "child"
    late = f"import time; time.sleep(4); open({str(child)!r}, 'w')"
    hangs = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {late!r}])"
    parts = fake(campaign, monkeypatch, fails="raise SystemExit('no such load')", hangs=hangs, works="print('measured')")
    folder = tmp_path / "results"
    campaign.measure(parts, folder, 60.0)
    said = capsys.readouterr().out
    assert "fails                exit code 1" in said and "no such load" in said
    assert "hangs                out of time" in said and "works                exit code 0" in said
    with tarfile.open(folder.with_suffix(".tar")) as archive:
        assert archive.extractfile("results/works.log").read() == b"measured\n"
    campaign.carry_out([sys.executable, "-c", "import time; time.sleep(3)"], {}, None, tmp_path / "log")
    assert not child.exists()  # what a part had started ended with it


def test_all_parts_warm_up_at_once_and_are_stopped(campaign, monkeypatch, tmp_path):
    """Two wait for each other to have begun, a third would go on for ever."""

    def waits(own, other, seen):
        return (
            f"import pathlib, time\npathlib.Path({own!r}).touch()\n"
            f"while not pathlib.Path({other!r}).exists(): time.sleep(0.01)\npathlib.Path({seen!r}).touch()"
        )

    a, b, saw_a, saw_b = (str(tmp_path / name) for name in ("a", "b", "saw_a", "saw_b"))
    parts = fake(campaign, monkeypatch, one=waits(a, b, saw_b), other=waits(b, a, saw_a), hangs="while True: pass")
    campaign.warm(parts, tmp_path / "warm", 8.0)
    assert Path(saw_a).exists() and Path(saw_b).exists()


def test_nothing_is_begun_without_time(campaign, monkeypatch, tmp_path, capsys):
    campaign.measure(fake(campaign, monkeypatch, works="print('measured')"), tmp_path / "results", 5.0)
    assert "no time left" in capsys.readouterr().out and not (tmp_path / "results" / "works.log").exists()


def test_variants_of_a_load_stand_side_by_side(campaign, tmp_path):
    for name, seconds in (("small", 0.022), ("million", 0.0125)):
        row = {"name": "honey", "solver": "dcpbd", "unit": "frame", "value": seconds, "asked": 0.008}
        (tmp_path / f"{name}.json").write_text(json.dumps({"rows": [row]}))
    assert campaign.compare(tmp_path).split("   ", 1)[0] == "honey, dcpbd (8 asked)"
    assert "small 22 ms   million 12.5 ms" in campaign.compare(tmp_path)
