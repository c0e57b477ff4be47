"""Writing TOML: the small part of the language that scenes use. Reading is the standard library's ``tomllib``."""

import json
from typing import Any


def write(data: dict[str, Any]) -> str:
    """TOML text of nested plain values: simple keys first, then [tables], then [[lists of tables]]."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in data.items() if not _is_section(value)]
    for key, value in data.items():
        if isinstance(value, dict) and value:
            lines += _table(_key(key), value)
        elif _is_section(value):
            for item in value:
                lines += ["", f"[[{_key(key)}]]", *(f"{_key(k)} = {_value(v)}" for k, v in item.items())]
    return "\n".join(lines).strip() + "\n"


def _is_section(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _table(name: str, table: dict[str, Any]) -> list[str]:
    """A [table]; one whose values are all tables (the materials) becomes [table.name] sections."""
    if all(isinstance(value, dict) for value in table.values()):
        return [line for key, value in table.items() for line in _table(f"{name}.{_key(key)}", value)]
    return ["", f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]


def _key(key: str) -> str:
    bare = key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
    return key if bare else quoted(key)


def quoted(text: str) -> str:
    # JSON's escapes are TOML's, except that TOML also wants DEL escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (int, float)):
        return repr(value)  # shortest text that reads back to the same number; inf is TOML too
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        value = {key: value[key] for key in sorted(value, key=lambda key: key != "type")}  # what it is comes first
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }" if value else "{}"
    raise TypeError(f"TOML has no {type(value).__name__}")
