"""What changed in the numbers of ``viscoil validate`` between two states of the program: a record, and a table of it.

In a checkout of each state, on the same machine:

    viscoil validate --quick --json --device cpu > before.json     (and after.json; the cases may be spread over several files)
    python benchmarks/validation_change.py --before before.json --after after.json --states 45a0e7a c950fc0

``--kernels``: the later state once more with VISCOIL_NATIVE=0, some of its cases or all. ``--reason "CASE=text"`` says why the
numbers of a case changed; reasons already in the record are kept. ``benchmarks/tables.py`` puts the table into the docs.

Numbers are held against each other in two ways. *change* is relative to the number before. *room* is the part that the change
takes of what the case allows: of the tolerance, or of the limit where it has only one side. Errors of 1e-7 may double without
meaning anything, so what needs a reason is a number that changed by more than ``SMALL`` both ways, or a check that failed.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parent / "results" / "validation_before_after.json"
SMALL = 0.03  # share of a number, and of what it may deviate by
SAME = 0.01  # share of a number up to which it counts as the same


def read(files: list[Path]) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows of several outputs by (case, quantity), of which later ones count; names must not hold measured numbers."""
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
    rows = [{**row, "quantity": re.sub(r" \(measured [^)]*\)", "", row["quantity"])} for row in rows]
    return {(row["name"], row["quantity"]): row for row in rows}


def compared(then: dict[str, Any], now: dict[str, Any], kernels: dict[str, Any] | None) -> dict[str, Any]:
    """One row of the record. Relations and tolerances are those of the later state."""
    kept = ("name", "quantity", "relation", "reference", "tolerance")
    other = {"kernels": kernels["measured"]} if kernels else {}
    return {**{key: now[key] for key in kept}, "before": then["measured"], "after": now["measured"], **other,
            "ok_before": then["ok"], "ok": now["ok"]}  # fmt: skip


def change(row: dict[str, Any]) -> float:
    """Relative to the number before."""
    difference = abs(row["after"] - row["before"])
    return difference / abs(row["before"]) if row["before"] else (0.0 if difference == 0 else float("inf"))


def room(row: dict[str, Any]) -> float:
    """Relative to what the case allows."""
    allowed = row["tolerance"] or abs(row["reference"])
    difference = abs(row["after"] - row["before"])
    return difference / allowed if allowed else (0.0 if difference == 0 else float("inf"))


def noticeable(row: dict[str, Any]) -> bool:
    """Whether somebody should say why."""
    return not row["ok"] or (change(row) > SMALL and room(row) > SMALL)


def record(before: Any, after: Any, kernels: Any, states: list[str], reasons: dict[str, str]) -> dict[str, Any]:
    """Everything, as it is written to disk; keys that only one state knows are told by name."""
    both = [key for key in after if key in before]
    return {
        "kind": "validation",
        "before": states[0],
        "after": states[1],
        "rows": [compared(before[key], after[key], kernels.get(key)) for key in both],
        "only_before": [": ".join(key) for key in before if key not in after],
        "only_after": [": ".join(key) for key in after if key not in before],
        "reasons": reasons,
    }


def _number(value: float) -> str:
    return f"{value:.4g}"


def _percent(value: float) -> str:
    return "new" if value == float("inf") else f"{100 * value:.2g} %" if value < 10 else f"{value:.2g}×"


def table(found: dict[str, Any]) -> str:
    """The record as Markdown: one line for all that stayed, rows for what did not."""
    rows, told = found["rows"], [row for row in found["rows"] if noticeable(row)]
    same, cases = sum(change(row) <= SAME for row in rows), len({row["name"] for row in rows})
    bits, failed = sum(row["after"] == row["before"] for row in rows), sum(not row["ok"] for row in rows)
    small = f"{100 * SMALL:g} %"
    lines = [
        f"States {found['before']} and {found['after']}: {len(rows)} numbers of {cases} cases, {failed} outside of what is "
        f"asked. {same} are the same within {100 * SAME:g} % ({bits} to the last bit), {len(rows) - same - len(told)} changed "
        f"by less than {small} or by less than {small} of what their case allows, {len(told)} by more:",
    ]
    if not told:
        return "\n".join(lines).replace(", 0 by more:", ", none by more.")
    lines += [
        "",
        "| case | number | asked | before | now | by kernels | change | of what is allowed |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    signs = {"near": "", "at most": "≤ ", "at least": "≥ "}
    for row in told:
        around = f" ± {_number(row['tolerance'])}" if row["tolerance"] else ""
        asked = f"{signs[row['relation']]}{_number(row['reference'])}{around}"
        kernels = _number(row["kernels"]) if "kernels" in row else ""
        quantity = row["quantity"].replace("|", "\\|")
        cells = (row["name"], quantity, asked, _number(row["before"]), _number(row["after"]), kernels)
        lines.append("| " + " | ".join((*cells, _percent(change(row)), _percent(room(row)))) + " |")
    lines += ["", *(f"- *{name}*: {text}" for name, text in found["reasons"].items())]
    if found["only_after"] or found["only_before"]:
        lines += ["", f"Asked anew: {'; '.join(found['only_after'])}. No longer asked: {'; '.join(found['only_before'])}."]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 when a number changed noticeably and nobody said why."""
    parser = argparse.ArgumentParser(description="Numbers of viscoil validate before and after a change.")
    parser.add_argument("--before", type=Path, nargs="+", required=True)
    parser.add_argument("--after", type=Path, nargs="+", required=True)
    parser.add_argument("--kernels", type=Path, nargs="*", default=[])
    parser.add_argument("--states", nargs=2, default=["before", "after"], help="names of the two, for instance commits")
    parser.add_argument("--reason", action="append", default=[], help="CASE=text")
    parser.add_argument("--output", type=Path, default=RECORD)
    options = parser.parse_args(arguments)
    kept = json.loads(options.output.read_text(encoding="utf-8"))["reasons"] if options.output.exists() else {}
    reasons = kept | dict(reason.split("=", 1) for reason in options.reason)
    found = record(*map(read, (options.before, options.after, options.kernels)), options.states, reasons)
    options.output.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(table(found) + "\n")
    missing = sorted({row["name"] for row in found["rows"] if noticeable(row)} - set(reasons))
    if missing:
        sys.stderr.write(f"no reason is given for {', '.join(missing)}\n")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
