"""Laying one table over another: profiles over files, overrides over both."""

from typing import Any

from viscoil.model import Problem
from viscoil.units import shown

# Keys that choose what a table is. When one changes, the keys of the old choice mean nothing and are left behind.
CHOOSING = ("type", "method")
# Keys of which only one may be given: setting one in a later layer replaces the others from an earlier one.
EXCLUSIVE = (("steps_per_frame", "step", "cfl"), ("tolerance", "relative"), ("density", "mass"))


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Dotted keys as tables: ``{"time.frames": 3}`` -> ``{"time": {"frames": 3}}``."""
    result: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, last = str(key).split(".")
        table = result
        for part in parents:
            inner = table.get(part)
            table[part] = inner = inner if isinstance(inner, dict) else {}
            table = inner
        if isinstance(value, dict):
            value = nested(value)
            if isinstance(table.get(last), dict):
                value = {**table[last], **value}
        table[last] = value
    return result


def dotted_paths(table: dict[str, Any], prefix: str = "") -> list[str]:
    """Paths of all values in nested tables."""
    paths: list[str] = []
    for key, value in table.items():
        path = f"{prefix}.{key}" if prefix else str(key)
        paths += dotted_paths(value, path) if isinstance(value, dict) and value else [path]
    return paths


def merge(base: Any, change: Any, found: list[Problem], path: str = "") -> Any:
    """``change`` over ``base``, both left as they were. Problems (a list index that does not exist) go to ``found``.

    Tables are merged key by key, everything else is replaced. A table with numbers as keys changes single items of a
    list: ``{"solid": {"0": {"friction": 1}}}``.
    """
    if isinstance(base, list) and isinstance(change, dict):
        return _merge_items(base, change, found, path)
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    if any(key in base and key in change and base[key] != change[key] for key in CHOOSING):
        return dict(change)
    result = dict(base)
    for group in EXCLUSIVE:
        if any(key in change for key in group):
            for key in group:
                result.pop(key, None)
    if any(key in change for key in ("steps_per_frame", "step")):
        result.pop("max_step", None)  # they limit the step that cfl chooses
        result.pop("min_step", None)
    for key, value in change.items():
        inner = f"{path}.{key}" if path else str(key)
        result[key] = merge(result[key], value, found, inner) if key in result else value
    return result


def _merge_items(base: list[Any], change: dict[str, Any], found: list[Problem], path: str) -> list[Any]:
    result = list(base)
    for key, value in change.items():
        if not str(key).isdigit():
            example = f"{path}.0.{key}"
            found.append(Problem(f"{path}.{key}", f"{path} is a list; expected a number after it, e.g. {example}"))
        elif int(key) >= len(result):
            count = f"there are {len(result)}, counted from 0" if result else "there are none"
            found.append(Problem(f"{path}.{key}", f"no item {key} in {path} ({count}); got {shown(value)}"))
        else:
            result[int(key)] = merge(result[int(key)], value, found, f"{path}.{key}")
    return result
