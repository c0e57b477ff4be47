"""Base of everything a user can write down, and the translation of pydantic's complaints into our words.

A ``Model`` forbids unknown keys, checks assignments, and raises ``SceneError`` with the same sentence whether the
value came from a file, from ``--set`` or from Python.
"""

import re
import types
from collections.abc import Iterator
from typing import Any, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from viscoil.errors import SceneError
from viscoil.keys import closest, listed
from viscoil.units import shown

MOST_ERRORS = 10  # lines shown for one scene; more would hide the first


class Model(BaseModel):
    """Strict pydantic model: no unknown keys, assignments are checked, errors are ``SceneError``."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, use_attribute_docstrings=True)

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise scene_error(type(self), error) from None

    # Says that this __init__ adds nothing a nested validation would have to call, so that one pass over a scene
    # collects all errors instead of stopping at the first nested model.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """As in pydantic, but raises ``SceneError``."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise scene_error(cls, error) from None

    def __setattr__(self, name: str, value: Any) -> None:
        before, fields_set = dict(vars(self)), set(self.__pydantic_fields_set__)
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            # A check across several fields runs after the assignment: put the old value back.
            vars(self).clear()
            vars(self).update(before)
            self.__pydantic_fields_set__.clear()
            self.__pydantic_fields_set__.update(fields_set)
            raise scene_error(type(self), error) from None


# --- walking a model along an error's path ---------------------------------------------------------------------------
def models_in(annotation: Any) -> list[type[BaseModel]]:
    """All model classes inside a type: ``list[Fluid] | None`` -> ``[Fluid]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    found: list[type[BaseModel]] = []
    for part in get_args(annotation):
        found += models_in(part)
    return found


def walk(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[str, type[BaseModel] | None, Any]:
    """Dotted path of an error, the model that owns its last key, and that key's field (None where unknown).

    pydantic puts the tag of a union (``box``) into the path; users never wrote it there, so it is left out.
    """
    path: list[str] = []
    current: type[BaseModel] | None = model
    owner: type[BaseModel] | None = model
    choices: list[type[BaseModel]] = []
    field: Any = None
    for part in loc:
        tagged = [c for c in choices if len(choices) > 1 and c.model_fields["type"].default == part]
        if tagged:
            current, choices = tagged[0], []
            continue
        path.append(str(part))
        if isinstance(part, str) and current is not None:
            owner, field = current, current.model_fields.get(part)
            choices = models_in(field.annotation) if field else []
            current = choices[0] if len(choices) == 1 else None
            if field and get_origin(field.annotation) is dict:
                # the next part is a user's own name, not a key
                named, current = current, None
                choices = [named] if named else []
        elif isinstance(part, str) and len(choices) == 1:
            current, field = choices[0], None
            owner, choices = current, []
    return ".".join(path), owner, field


def expected_of(field: Any) -> str:
    """What a field wants, in words: from its annotation's own text, its choices or its type."""
    if field is None:
        return ""
    for meta in field.metadata:
        if hasattr(meta, "expected"):
            return meta.expected
    for text in _expected_inside(field.annotation):
        return text
    return ""


def _expected_inside(annotation: Any) -> Iterator[str]:
    origin = get_origin(annotation)
    if origin is Literal:
        yield "one of " + listed(shown(choice) for choice in get_args(annotation))
    for meta in getattr(annotation, "__metadata__", ()):
        if hasattr(meta, "expected"):
            yield meta.expected
    if origin in (Union, types.UnionType) or hasattr(annotation, "__metadata__"):
        for part in get_args(annotation):
            yield from _expected_inside(part)
    simple = {str: 'text, e.g. "name"', bool: "true or false", int: "a whole number", float: "a number"}
    if isinstance(annotation, type) and annotation in simple:
        yield simple[annotation]
    models = models_in(annotation)
    if origin is list and models:
        yield "a list of tables"
    elif origin is dict and models:
        yield "named tables"
    elif models and origin not in (Union, types.UnionType):
        yield "a table"


def unknown_key(key: str, owner: type[BaseModel] | None) -> str:
    """Sentence for a key that does not exist, with what was probably meant and what there is."""
    if owner is None:
        return f'unknown key "{key}"'
    names = list(owner.model_fields)
    near = closest(key, names)
    hint = f' Did you mean "{near}"?' if near else ""
    return f'unknown key "{key}".{hint} Expected one of: {listed(names)}'


# --- messages --------------------------------------------------------------------------------------------------------
class Problem:
    """One wrong key: where, and the sentence about it."""

    def __init__(self, key: str, text: str, expected: str = "", suggestion: str | None = None) -> None:
        self.key = key  # dotted path
        self.text = text
        self.expected = expected
        self.suggestion = suggestion
        self.line: int | None = None  # in the scene file, where known
        self.source = ""  # "--set" or "override" when the value did not come from the file

    def sentence(self) -> str:
        """Where and what, without the file."""
        where = " ".join(part for part in (self.source, self.key) if part)
        return f"{where}: {self.text}" if where else self.text


_LIMITS = {
    "greater_than": ("greater than", "gt"), "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"), "less_than_equal": ("at most", "le"),
}  # fmt: skip
_TYPES = {
    "int_type": "a whole number", "int_parsing": "a whole number", "int_from_float": "a whole number",
    "float_type": "a number", "float_parsing": "a number", "finite_number": "a finite number",
    "bool_type": "true or false", "bool_parsing": "true or false", "string_type": "text",
    "list_type": "a list", "dict_type": "a table", "model_type": "a table", "model_attributes_type": "a table",
    "tuple_type": "a list",
}  # fmt: skip


def problems(model: type[BaseModel], error: ValidationError) -> list[Problem]:
    """All complaints of one validation, in our words, in the order of the file."""
    found: list[Problem] = []
    for item in error.errors(include_url=False):
        inner = item.get("ctx", {}).get("error")
        if isinstance(inner, NestedProblems):
            prefix = walk(model, item["loc"])[0]
            for problem in inner.problems:
                problem.key = f"{prefix}.{problem.key}" if problem.key and prefix else prefix or problem.key
                found.append(problem)
        else:
            found.append(_problem(model, item))
    return found


class NestedProblems(ValueError):
    """Carries the problems of a model that was validated by hand inside another validation."""

    def __init__(self, found: list[Problem]) -> None:
        super().__init__("; ".join(problem.text for problem in found))
        self.problems = found


def _problem(model: type[BaseModel], item: Any) -> Problem:
    key, owner, field = walk(model, item["loc"])
    kind, value, context = item["type"], item.get("input"), item.get("ctx", {})
    last = str(item["loc"][-1]) if item["loc"] else ""
    expected, suggestion = expected_of(field), None
    if kind in ("extra_forbidden", "no_such_attribute"):
        suggestion = closest(last, owner.model_fields) if owner else None
        return Problem(key, unknown_key(last, owner), "a known key", suggestion)
    if kind == "missing":
        return Problem(key, f"missing; expected {expected or 'a value'}", expected)
    choices = models_in(field.annotation) if field is not None else []
    if kind in ("model_attributes_type", "model_type") and len(choices) > 1:
        kind = "union_tag_not_found"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tags = [str(tag).strip("'") for tag in context.get("expected_tags", "").split(", ") if tag]
        return _tag_problem(key, kind, value, context, tags or _tags_of(field))
    if kind == "literal_error":
        words = [str(choice) for choice in get_args(_literal(field))] or [context.get("expected", "")]
        suggestion = closest(str(value), words)
        hint = f'. Did you mean "{suggestion}"?' if suggestion else ""
        expected = "one of " + listed(f'"{word}"' for word in words)
        return Problem(key, f"expected {expected}; got {shown(value)}{hint}", expected, suggestion)
    if kind in _LIMITS:
        word, name = _LIMITS[kind]
        expected = f"a number {word} {context[name]:g}"
    elif kind == "too_short":
        expected = f"a list with at least {context['min_length']} item"
    elif kind in _TYPES:
        expected = expected or _TYPES[kind]
        if kind == "list_type" and isinstance(value, dict) and models_in(field.annotation):  # [emitter] for [[emitter]]
            expected += f", each under [[{re.sub(r'[.][0-9]+', '', key)}]] in double brackets"
    elif kind == "frozen_field":
        return Problem(key, "cannot be changed after the scene was made; give it to load() or Scene(...) instead")
    elif kind == "viscoil":
        text = item["msg"]
        wanted = text.split("; got ")[0].removeprefix("expected ") if text.startswith("expected ") else ""
        suggestion = text.rsplit('Did you mean "', 1)[1].split('"')[0] if 'Did you mean "' in text else None
        return Problem(key, text, wanted, suggestion)
    elif not expected:
        return Problem(key, f"{item['msg'][:1].lower()}{item['msg'][1:]}; got {shown(value)}")
    return Problem(key, f"expected {expected}; got {shown(value)}", expected)


def _literal(field: Any) -> Any:
    annotation = field.annotation if field is not None else None
    for part in (annotation, *get_args(annotation)):
        if get_origin(part) is Literal:
            return part
    return None


def _tags_of(field: Any) -> list[str]:
    return [str(model.model_fields["type"].default) for model in models_in(field.annotation)] if field else []


def _tag_problem(key: str, kind: str, value: Any, context: dict[str, Any], tags: list[str]) -> Problem:
    """A shape without a type, or of a type that does not exist."""
    expected = "one of " + listed(tags)
    if kind == "union_tag_invalid":
        given = str(context.get("tag"))
        near = closest(given, tags)
        hint = f' Did you mean "{near}"?' if near else ""
        return Problem(f"{key}.type", f'unknown type "{given}".{hint} Expected {expected}', expected, near)
    if not isinstance(value, dict):
        table = 'a table with a type, e.g. { type = "box", size = [1.0, 2.0, 1.0] }'
        return Problem(key, f"expected {table}; got {shown(value)}", table)
    return Problem(f"{key}.type", f"missing; expected {expected}", expected)


def scene_error(model: type[BaseModel], error: ValidationError, file: str | None = None) -> SceneError:
    """The one error for a failed validation."""
    return joined(problems(model, error), file or model.__name__, file)


def joined(found: list[Problem], title: str, file: str | None = None) -> SceneError:
    """One error from several problems: a single line for one, a list for more (at most ten shown)."""
    if len(found) == 1:
        line = f":{found[0].line}" if found[0].line else ""
        message = f"{title}{line}: {found[0].sentence()}"
    else:
        lines = [f"line {p.line}: {p.sentence()}" if p.line else p.sentence() for p in found]
        rest = len(lines) - MOST_ERRORS
        more = [f"… and {rest} more"] if rest > 0 else []
        message = "\n  ".join([f"{title}: {len(lines)} errors", *lines[:MOST_ERRORS], *more])
    first = found[0]
    return SceneError(message, file=file, key=first.key, expected=first.expected, suggestion=first.suggestion)
