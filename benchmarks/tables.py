"""Writes the tables of measured speeds into the README, between markers, from benchmarks/results/*.json.

    python benchmarks/tables.py            rewrite the tables
    python benchmarks/tables.py --check    say whether they are up to date (exit code 1 when not)

The files come from ``viscoil bench stages --json benchmarks/results/NAME.json``.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from viscoil.bench import report

ROOT = Path(__file__).resolve().parent.parent
NAME = "bench:stages"
BLOCK = re.compile(rf"(<!-- {NAME} -->\n).*?(<!-- /{NAME} -->)", re.DOTALL)


def markdown(table: report.Table) -> str:
    """A table as Markdown; numbers are aligned to the right."""
    title, columns, rows = table
    lines = [f"**{title}**", "", "| " + " | ".join(columns) + " |", "|" + "---|" + "--:|" * (len(columns) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def papers_table(results: list[dict[str, Any]]) -> report.Table:
    """The paper's scenes in rows, machines in columns."""
    columns = ["size of", "particles", "iterations", f"paper, {report.paper.HARDWARE}"]
    columns += [report.hardware(result) for result in results]
    rows = []
    measured = [{row["scene"]: report.number(row["step_ms"]) for row in result["paper"]} for result in results]
    for scene in report.paper.SCENES:
        row = [scene.name, f"{scene.particles:,}", str(scene.iterations), report.number(scene.step_ms)]
        rows.append(row + [times.get(scene.name, "–") for times in measured])
    return "The paper's table, ms per step (full tanks of the same size, with confinement and XSPH)", columns, rows


def text(results: list[dict[str, Any]]) -> str:
    """Everything between the markers."""
    parts = []
    for result in results:
        parts.append(markdown(report.stage_table(result)))
        versions = result["machine"]["versions"]
        parts.append(
            f"`{result['command']}`, {result['machine']['date']}, viscoil {versions['viscoil']}, "
            f"quadrants {versions['quadrants']}"
        )
        parts += result["notes"]
    with_paper = [result for result in results if result["paper"]]
    if with_paper:
        parts.append(markdown(papers_table(with_paper)))
    for result in results:
        if result["yardstick"]:
            parts.append(markdown(report.yardstick_table(result)))
    return "\n\n".join(parts) + "\n"


def read(folder: Path) -> list[dict[str, Any]]:
    """The results in a folder, CPUs first."""
    results = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    results = [result for result in results if result.get("kind") == "stages"]
    return sorted(results, key=lambda result: (bool(result["machine"]["gpu"]), report.hardware(result)))


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Tables of measured speeds in the README.")
    parser.add_argument("--check", action="store_true", help="change nothing, exit with 1 when out of date")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args(arguments)
    before = options.readme.read_text(encoding="utf-8")
    if not BLOCK.search(before):
        sys.stderr.write(f"{options.readme} has no <!-- {NAME} --> ... <!-- /{NAME} --> to fill\n")
        return 1
    results = read(options.results)
    if not results:
        sys.stderr.write(f"{options.results} holds no results of viscoil bench stages\n")
        return 1
    after = BLOCK.sub(lambda found: found[1] + text(results) + found[2], before)
    if options.check:
        if after != before:
            sys.stderr.write("the README's tables are out of date: run python benchmarks/tables.py\n")
        return int(after != before)
    options.readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
