"""How much house there is: lines, long argument lists, switches, environment variables. Numbers that are meant to fall.

    python benchmarks/house.py            # of this tree
    python benchmarks/house.py FOLDER     # of the sources in another one, to compare two states
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "viscoil"
PHYSICS = ("solvers", "constraints", "steps", "sph")  # the packages that hold the algorithms
WIDE, WIDER = 10, 12  # parameters from which a list of them is long, and too long

# What there may be at most. A change that needs more has to say why; one that needs less lowers the number.
MOST = {
    "lines": 54_500, "lines of C++": 1_740, "lines of physics": 15_150, "functions over 10 parameters": 150,
    "functions over 12 parameters": 88, "most parameters": 42, "environment variables": 6, "fmt: skip": 631,
    "lines with qd.static": 565,
}  # fmt: skip


def parameters(node: ast.FunctionDef) -> int:
    """Those that a caller has to know of."""
    return len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs)


def measure(source: Path) -> dict[str, int]:
    """The numbers of MOST for the sources in a folder."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    functions = [
        node for text in texts.values() for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)
    ]
    widths = [parameters(node) for node in functions]
    compiled = [path.read_text() for path in source.rglob("*") if path.suffix in (".h", ".cpp")]
    inside = [text for path, text in texts.items() if path.relative_to(source).parts[0] in PHYSICS]
    everything = "\n".join(texts.values())
    return {
        "lines": _lines(texts.values()), "lines of C++": _lines(compiled), "lines of physics": _lines(inside),
        "functions over 10 parameters": sum(width > WIDE for width in widths),
        "functions over 12 parameters": sum(width > WIDER for width in widths),
        "most parameters": max(widths, default=0),
        "environment variables": len(set(re.findall(r"\bVISCOIL_[A-Z]+", everything))),
        "fmt: skip": everything.count("# fmt: skip"),
        "lines with qd.static": sum("qd.static" in line for line in everything.splitlines()),
    }  # fmt: skip


def _lines(texts) -> int:
    return sum(Counter(text)["\n"] for text in texts)


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    for name, value in measure(source).items():
        print(f"{name:30} {value:7,}   at most {MOST[name]:,}")


if __name__ == "__main__":
    main()
