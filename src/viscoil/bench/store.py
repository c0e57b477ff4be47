"""Results of measurements: what every file of them has, and how it is written while the measurement goes on."""

import json
from pathlib import Path
from typing import Any

from viscoil.bench import machine
from viscoil.errors import ViscoilError

FORMAT = 2
KINDS = ("stages", "papers", "scaling", "peers", "convergence", "loops")


def opened(kind: str, command: str, **more: Any) -> dict[str, Any]:
    """A result without rows: hardware and versions, the command that repeats it, and what else is known at the start."""
    notes = machine.notes(about := machine.describe())
    return {"format": FORMAT, "kind": kind, "command": command, "machine": about, **more, "rows": [], "notes": notes}


def write(file: Path | None, result: dict[str, Any]) -> None:
    """The result so far into ``file``, if there is one: what was measured is kept, whatever happens to the rest."""
    if file is not None:
        from viscoil.io.atomic import write_atomic

        write_atomic(Path(file), (json.dumps(result, indent=1) + "\n").encode())


def read(file: Path) -> dict[str, Any]:
    """A stored result of one of KINDS."""
    try:
        result = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ViscoilError(f"{file} cannot be read as results: {error}") from error
    if not isinstance(result, dict) or result.get("kind") not in KINDS or "rows" not in result:
        raise ViscoilError(f"{file} holds no results of viscoil bench {'|'.join(KINDS)}")
    return result
