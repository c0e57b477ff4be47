"""How much house there is: the counts are right, and nothing grows beyond what was agreed."""

import importlib.util
from pathlib import Path

FILE = Path(__file__).parents[1] / "benchmarks" / "house.py"
SPEC = importlib.util.spec_from_file_location("house", FILE)
house = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(house)


def test_counts(tmp_path):
    (tmp_path / "sph").mkdir()
    wide = ", ".join(f"p{k}" for k in range(11))
    (tmp_path / "sph" / "a.py").write_text(f"def f({wide}, *, last):\n    return 1  # fmt: skip\n")
    text = "import os\nx = os.environ['VISCOIL_THINGS'] + 'VISCOIL_THINGS'\ny = qd.static(qd.static(1))\n"
    (tmp_path / "b.py").write_text(text)
    (tmp_path / "c.h").write_text("int a;\nint b;\n")
    assert house.measure(tmp_path) == {
        "lines": 5, "lines of C++": 2, "lines of physics": 2, "functions over 10 parameters": 1,
        "functions over 12 parameters": 0, "most parameters": 12, "environment variables": 1, "fmt: skip": 1,
        "lines with qd.static": 1,
    }  # fmt: skip


def test_nothing_grows():
    found = house.measure(house.SOURCE)
    assert found.keys() == house.MOST.keys()
    assert not {name: (found[name], most) for name, most in house.MOST.items() if found[name] > most}
