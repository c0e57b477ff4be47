"""Writes measured speeds into docs/performance.md, between markers, from benchmarks/results/MACHINE/*.json.

    python benchmarks/tables.py            rewrite the tables and draw docs/performance/*.png
    python benchmarks/tables.py --check    say whether the tables are up to date (exit code 1 when not)

The files come from ``viscoil bench all --json benchmarks/results/MACHINE``, or from ``viscoil bench KIND --json …/KIND.json``.
A marker <!-- bench:NAME --> ... <!-- /bench:NAME --> holds what NAME of BLOCKS makes of them.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from viscoil.bench import papers, report

sys.path.insert(0, str(Path(__file__).resolve().parent))
import earlier
import growth
import validation_change

ROOT = Path(__file__).resolve().parent.parent
BEFORE = ROOT / "benchmarks" / "results" / "before"
MARKED = re.compile(r"(<!-- bench:([\w-]+) -->\n).*?(<!-- /bench:\2 -->)", re.DOTALL)
Results = list[tuple[str, dict[str, Any]]]  # (machine, result)


def markdown(table: report.Table) -> str:
    """A table as Markdown; numbers are aligned to the right."""
    title, columns, rows = table
    lines = [f"**{title}**", "", "| " + " | ".join(columns) + " |", "|" + "---|" + "--:|" * (len(columns) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def told(result: dict[str, Any]) -> str:
    """Command, date and versions."""
    about = result["machine"]
    versions = about["versions"]
    return f"`{result['command']}`, {about['date']}, viscoil {versions['viscoil']}, quadrants {versions['quadrants']}"


def chosen(results: Results, kind: str) -> list[dict[str, Any]]:
    """Results of a kind that hold something, CPUs first."""
    return [result for _, result in results if result["kind"] == kind and result["rows"]]


def each(
    kind: str, make: Callable[[dict[str, Any]], list[report.Table]], since: bool = False
) -> Callable[[Results], str]:  # fmt: skip
    """A block: tables of every result of a kind, and where they come from. ``since``: not of earlier states, which lack it."""

    def text(results: Results) -> str:
        parts = []
        for result in chosen(results, kind):
            if since and result.get("earlier"):
                continue
            if found := make(result):
                parts += [*map(markdown, found), told(result), *result["notes"]]
        return "\n\n".join(parts) or "Not measured yet."

    return text


def _of_solvers(result: dict[str, Any], solvers: list[str]) -> list[report.Table]:
    measured = {row["solver"] for row in result["rows"]}
    return [report.stage_table(result, solver) for solver in solvers if solver in measured]


def _papers(result: dict[str, Any], gpu: bool) -> list[report.Table]:
    return [report.papers_table(result)] if bool(result["machine"]["gpu"]) is gpu else []


def _threads(result: dict[str, Any]) -> list[report.Table]:
    return [report.threads_table(result)] if any(row["what"] == "threads" for row in result["rows"]) else []


def _sizes(result: dict[str, Any]) -> list[report.Table]:
    return [report.sizes_table(result)] if any(row["what"] == "sizes" for row in result["rows"]) else []


def _before() -> dict[str, float]:
    """What the loads of ``viscoil bench papers`` took on an H200 before: seconds, or particles·iterations/s."""
    found = [result for machine, result in earlier.read(BEFORE) if machine == "h200" and result["kind"] == "papers"]
    return {row["name"]: row["value"] for result in found for row in result["rows"]}


def before_and_now(results: Results) -> str:
    """The H200's loads before this work, from benchmarks/results/before, and now."""
    then, parts = _before(), []
    for result in chosen(results, "papers"):
        rows = [row for row in result["rows"] if row["name"] in then and "H200" in result["machine"]["gpu"]]
        waffle = papers.cube_name("waffle")  # before, it made a quarter of its iterations
        rows = [row for row in rows if row["name"] != waffle]
        rows = [] if result.get("earlier") else rows
        lines = []
        for row in rows:
            old, new = then[row["name"]], row["value"]
            gain = new / old if row["unit"] == "rate" else old / new
            amounts = [report.amount(value, row["unit"]) for value in (old, new)]
            lines.append([row["name"], f"{row['particles']:,}", *amounts, f"{gain:.2f}×"])
        if lines:
            title = f"Before and now, steps alone, {report.hardware(result)}"
            parts.append(markdown((title, ["load", "particles", "before", "now", "faster"], lines)))
    return "\n\n".join(parts) or "The state this page describes has not been measured on an H200 as a whole."


def _on_gpus(results: Results) -> list[dict[str, Any]]:
    """What growth.py looks at, of this state."""
    return [r for _, r in results if r["kind"] in ("papers", "scaling") and r["machine"]["gpu"] and not r.get("earlier")]


def by_size(results: Results) -> str:
    """What a particle's iteration costs, by the number of particles."""
    found = growth.rows(_on_gpus(results))
    return markdown(("Cost by size, NVIDIA H200", growth.COLUMNS, found)) if found else "Not measured yet."


def changes(results: Results) -> str:
    """What became of the numbers of viscoil validate."""
    return "\n\n".join(validation_change.table(r["record"]) for _, r in results if "record" in r) or "Not measured yet."


def plots(results: Results) -> str:
    """Pictures of everything that was measured."""
    lines = [f"![{kind}, {report.hardware(result)}](performance/{name})" for name, kind, result in pictures(results)]
    return "\n\n".join(lines) or "Not measured yet."


def pictures(results: Results) -> list[tuple[str, str, dict[str, Any]]]:
    """(file name, kind, result) of every picture."""
    wanted = [(machine, r) for machine, r in results if r["rows"] and (r["kind"] != "papers" or r["machine"]["gpu"])]
    wanted = [(machine, r) for machine, r in wanted if r["kind"] != "stages" or not r.get("earlier")]
    return [(f"{r['kind']}_{machine}.png", r["kind"], r) for machine, r in wanted]


BLOCKS: dict[str, Callable[[Results], str]] = {
    "pbf": each("stages", lambda result: _of_solvers(result, ["pbf"])),
    "stages": each("stages", lambda result: _of_solvers(result, ["dcpbd", "pvfs", "iisph"])),
    "roofline": each("stages", lambda result: [report.roofline_table(result), report.copy_table(result)], True),
    "memory": each("stages", lambda result: [report.memory_table(result)], True),
    "yardstick": each("stages", lambda result: [report.yardstick_table(result)] if result["yardstick"] else [], True),
    "papers-gpu": each("papers", lambda result: _papers(result, True)),
    "papers-cpu": each("papers", lambda result: _papers(result, False)),
    "before": before_and_now,
    "shares": each("papers", lambda result: report.tables(result)[1:]),
    "threads": each("scaling", _threads),
    "sizes": each("scaling", _sizes),
    "growth": by_size,
    "peers": each("peers", report.tables),
    "convergence": each("convergence", report.tables),
    "validation": changes,
    "plots": plots,
}


def read(folder: Path) -> Results:
    """The results in a folder's folders, CPUs first, and those of earlier states of hardware that nothing newer is of: of the
    papers' loads those that were not measured again."""
    found = []
    for file in sorted(folder.glob("*/*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        if {"kind", "rows", "machine"} <= set(result):
            found.append((file.parent.name if file.stem == result["kind"] else f"{file.parent.name}_{file.stem}", result))
    have = {(result["kind"], report.hardware(result).split(", compiled")[0]) for _, result in found}
    measured = [(report.hardware(r).split(", compiled")[0], r["rows"]) for _, r in found if r["kind"] == "papers"]
    again = {(hardware, row["name"]) for hardware, rows in measured for row in rows}
    for machine, result in earlier.read(folder / "before"):
        hardware = report.hardware(result)
        if result["kind"] == "papers" and machine == "h200":
            rows = [row for row in result["rows"] if (hardware, row["name"]) not in again]
            found.append((f"{machine}_earlier", {**result, "rows": rows}))
        elif (result["kind"], hardware) not in have:
            found.append((machine, result))
    if (file := folder / validation_change.RECORD.name).exists():
        record = json.loads(file.read_text(encoding="utf-8"))
        found.append(("", {"kind": "validation", "rows": [], "machine": {"gpu": ""}, "record": record}))
    return sorted(found, key=lambda one: (bool(one[1]["machine"]["gpu"]), one[0]))


def filled(text: str, results: Results, name: Path) -> str:
    """The text with every marked block made anew."""

    def block(found: re.Match[str]) -> str:
        if found[2] not in BLOCKS:
            raise SystemExit(f"{name}: there is no block bench:{found[2]}; expected one of {', '.join(BLOCKS)}")
        return f"{found[1]}{BLOCKS[found[2]](results)}\n{found[3]}"

    return MARKED.sub(block, text)


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Tables of measured speeds in the documentation.")
    parser.add_argument("--check", action="store_true", help="change nothing, exit with 1 when out of date")
    parser.add_argument("--files", type=Path, nargs="+", default=[ROOT / "docs" / "performance.md"])
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--pictures", type=Path, default=ROOT / "docs" / "performance", help="folder of the plots")
    options = parser.parse_args(arguments)
    results, old = read(options.results), []
    if not results:
        sys.stderr.write(f"{options.results} holds no results of viscoil bench\n")
        return 1
    for file in options.files:
        before = file.read_text(encoding="utf-8")
        if not MARKED.search(before):
            sys.stderr.write(f"{file} has no <!-- bench:NAME --> ... <!-- /bench:NAME --> to fill\n")
            return 1
        after = filled(before, results, file)
        if after != before:
            old.append(file.name)
            if not options.check:
                file.write_text(after, encoding="utf-8")
    if options.check:
        if old:
            sys.stderr.write(f"tables of {', '.join(old)} are out of date: run python benchmarks/tables.py\n")
        return int(bool(old))
    from viscoil.bench import plots as drawing

    for name, _, result in pictures(results):
        drawing.draw(result, options.pictures / name)
    if found := _on_gpus(results):
        growth.draw(found, options.pictures / "growth_h200.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
