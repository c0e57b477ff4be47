"""Adds rows of new results to the record of a machine; rows of the same load give way:

    python benchmarks/merge.py benchmarks/results/h200/papers.json new.json more.json

A machine that is lent by the minute measures in pieces. All pieces must be of one kind and from one machine, which is checked;
the record keeps every piece's command.
"""

import json
import os
import sys
from pathlib import Path

SAME = ("device", "gpu", "cpu", "cores")  # of the machine


def key(row: dict) -> tuple:
    """What a row is about."""
    return tuple(row.get(name) for name in ("paper", "name", "solver", "particles", "threads"))


def merge(record: dict, piece: dict) -> dict:
    """``record`` with the rows of ``piece``, in the order they were first measured."""
    for name in SAME:
        if record["machine"][name] != piece["machine"][name]:
            raise ValueError(f"{name} of the machine: {record['machine'][name]} and {piece['machine'][name]}")
    if record["kind"] != piece["kind"]:
        raise ValueError(f"a record of {record['kind']} and results of {piece['kind']}")
    rows = {key(row): row for row in record["rows"]} | {key(row): row for row in piece["rows"]}
    commands = [command for command in record["command"].split("; ") if command != piece["command"]]
    notes = record["notes"] + [note for note in piece["notes"] if note not in record["notes"]]
    newest = piece["machine"] if piece["machine"]["date"] >= record["machine"]["date"] else record["machine"]
    return record | {
        "rows": list(rows.values()),
        "command": "; ".join([*commands, piece["command"]]),
        "notes": notes,
        "machine": newest,
    }


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    target = Path(sys.argv[1])
    pieces = [json.loads(Path(name).read_text()) for name in sys.argv[2:]]
    record = json.loads(target.read_text()) if target.exists() else pieces.pop(0)
    for piece in pieces:
        record = merge(record, piece)
    fresh = target.with_suffix(".part")
    fresh.write_text(json.dumps(record, indent=1) + "\n")
    os.replace(fresh, target)
    print(f"{target}: {len(record['rows'])} rows")


if __name__ == "__main__":
    main()
