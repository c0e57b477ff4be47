"""Results of earlier states, in the shape of today's: what tables show where nothing newer was measured on that hardware.

benchmarks/results/before/*.json were written by commands that have changed since. Nothing is computed here but units.
"""

import json
from pathlib import Path
from typing import Any

from viscoil.bench import conformation, iisph, machine, papers, pvfs

NOTE = "Measured on {date}, before the changes that docs/performance.md describes."


def _result(kind: str, command: str, about: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    notes = [NOTE.format(date=about["date"]), *([] if about["gpu"] else machine.notes(about))]
    return {"kind": kind, "command": command, "machine": about, "rows": rows, "notes": notes, "earlier": True}


def _tanks(stored: dict[str, Any]) -> dict[str, Any]:
    """Stages of PBF."""
    rows = []
    for block in stored["blocks"]:
        counts = {"iterations": block["iterations"]}
        rows.append({**block, "solver": "pbf", "counts": counts, "iteration_ms": {"iterations": block["iteration_ms"]}})
    return _result("stages", stored["command"], stored["machine"], rows)


def _loads(folder: Path, where: str) -> dict[str, Any] | None:
    """The papers' loads of one machine, from up to four files."""
    stored = {}
    for name in ("", "_pvfs", "_iisph", "_conformation"):
        file = folder / f"{where}{name}.json"
        if file.exists():
            stored[name] = json.loads(file.read_text(encoding="utf-8"))
    if not stored:
        return None
    rows = _macklin(stored.get("", {"paper": [], "blocks": []}))
    wanted = {load.name: load for load in pvfs.LOADS}
    for row in stored.get("_pvfs", {"rows": []})["rows"]:
        load = wanted[row["name"]]
        work = f"{row['springs']:.0f} springs each" if load.springs else "no springs"
        rows.append(
            papers._row(
                papers.CLAVET, papers.block_name(row["name"]), "pvfs", row["particles"], work, "step", row["step"],
                run=row["seconds"],
                published=1e-3 * load.paper if load.paper else None, asked=1e-3 * load.wanted if load.wanted else None,
                asked_of="H200" if row["name"] == "1m" else "2 cores", stages=papers._shares(row["stages"]),
            )
        )  # fmt: skip
    plates = {load.name: load for load in iisph.LOADS}
    for row in stored.get("_iisph", {"rows": []})["rows"]:
        load = plates[row["name"]]
        rows.append(
            papers._row(
                papers.TAKAHASHI, papers.ball_name(row["name"], row["correction"]), "iisph", row["particles"], "5 iterations",
                "step", row["step"], run=row["seconds"], asked=1e-3 * load.wanted if row["correction"] != "none" else None,
                asked_of="2 cores" if load.plates else "H200", stages=papers._shares(row["stages"]),
            )
        )  # fmt: skip
    cubes = {load.name: load for load in conformation.LOADS}
    for row in stored.get("_conformation", {"rows": []})["rows"]:
        load = cubes[row["name"]]
        rows.append(
            papers._row(
                papers.BARREIRO, papers.cube_name(row["name"]), "dcpbd", row["particles"],
                f"{load.steps} × ({row['iterations']})", "frame", row["seconds"],
                published=load.paper, asked=load.wanted, stages=papers._shares(row["stages"]),
            )
        )  # fmt: skip
    about = next(iter(stored.values()))["machine"]
    command = "viscoil bench stages; viscoil bench pvfs; viscoil bench iisph; viscoil bench conformation"
    return _result("papers", command, about, rows)


def _macklin(stored: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for row in stored["paper"]:
        rows.append(
            papers._row(
                papers.MACKLIN, papers.tank_name(row["scene"]), "pbf", row["particles"], f"{row['iterations']} iterations",
                "step", 1e-3 * row["step_ms"], run=1e-3 * row["run_ms"], published=1e-3 * row["paper"]["step_ms"],
                stages=papers._shares(row["stages_ms"]),
            )
        )  # fmt: skip
    for block in stored["blocks"]:
        if block["particles"] == 1_000_000:
            for what, rate in (("whole steps", block["rate"]), ("iterations alone", block["iteration_rate"])):
                rows.append(
                    papers._row(
                        papers.MACKLIN, f"tank at rest, {papers.MILLION}, {what}", "pbf", block["particles"], "4 iterations",
                        "rate", rate, asked=papers.ASKED_RATES[what], stages=papers._shares(block["stages_ms"]),
                    )
                )  # fmt: skip
    return rows


def read(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """(machine, result) of everything in the folder."""
    found = []
    for where in ("cpu", "h200"):
        file = folder / f"{where}.json"
        if file.exists():
            found.append((where, _tanks(json.loads(file.read_text(encoding="utf-8")))))
        if loads := _loads(folder, where):
            found.append((where, loads))
    return found
