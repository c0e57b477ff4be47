"""Memory of a simulation on its device, from the arrays that are really there."""

import math
from dataclasses import fields, is_dataclass
from typing import Any

import quadrants as qd

KINDS = (qd.Ndarray,)
SIZES = {"f32": 4, "i32": 4, "u32": 4, "f64": 8, "i64": 8, "u64": 8, "f16": 2, "i16": 2, "u16": 2, "i8": 1, "u8": 1, "u1": 1}


def element_bytes(array: Any) -> int:
    """Bytes of one element of a device array: 12 for a vector of three floats."""
    return SIZES[str(array.dtype)] * math.prod(array.element_shape or (1,))


def array_bytes(array: Any) -> int:
    """Bytes of a whole device array."""
    return element_bytes(array) * math.prod(array.shape or (1,))


def arrays(thing: Any, seen: set[int] | None = None, found: dict[int, Any] | None = None) -> dict[int, Any]:
    """All device arrays that ``thing`` holds, directly or through what it holds, each once (by identity)."""
    seen, found = set() if seen is None else seen, {} if found is None else found
    if id(thing) in seen:
        return found
    seen.add(id(thing))
    if isinstance(thing, KINDS):
        found[id(thing)] = thing
    elif isinstance(thing, dict):
        for value in thing.values():
            arrays(value, seen, found)
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            arrays(value, seen, found)
    elif is_dataclass(thing) and not isinstance(thing, type):
        for field in fields(thing):
            arrays(getattr(thing, field.name, None), seen, found)
        arrays(getattr(thing, "__dict__", {}), seen, found)
    elif type(thing).__module__.startswith("viscoil") and hasattr(thing, "__dict__"):
        arrays(vars(thing), seen, found)
    return found


def account(sim: Any) -> dict[str, Any]:
    """Bytes by owner, their sum, and that per particle.

    "fields": what particles are; "spare": where they are sorted to, and what a step that fails goes back to; "list": their
    neighbours; "cells": the search; "rows": springs and the like, with their spares; "scratch": the method's; "else": the rest.
    """
    world, solver = sim.world, sim.solver
    owners: list[tuple[str, Any]] = [
        ("fields", world.particles), ("list", world.neighbors.list), ("cells", world.neighbors),
        ("rows", world.carried), ("spare", [getattr(world, "spare", None), getattr(world, "_kept", None)]), ("scratch", solver),
        ("else", world),
    ]  # fmt: skip
    seen: set[int] = set()
    parts: dict[str, int] = {}
    for name, thing in owners:
        # "spare" before the solver, which knows the world: what is counted once is not counted again.
        parts[name] = sum(array_bytes(array) for array in arrays(thing, seen).values())
    total = sum(parts.values())
    return {"parts": parts, "bytes": total, "per_particle": total / max(world.count, 1)}
