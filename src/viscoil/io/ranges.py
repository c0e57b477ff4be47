"""Frame ranges as people type them: ``12``, ``10:20``, ``10:``, ``:-1``, ``::5``, ``0,10,20:30``."""

import re

from viscoil.errors import SceneError

_HELP = "expected a frame (12, or -1 for the last), a range a:b or a:b:step (10:20, 10:, ::5), or several with commas"
_NUMBER = re.compile(r"[+-]?\d+")


def frame_range(text: str | None, available: list[int]) -> list[int]:
    """The frames of ``available`` (ascending numbers) that ``text`` asks for, ascending and each once.

    ``a:b`` is every frame from a up to and including b, as in "frames 10 to 20"; negative numbers count from the last
    one (-1), a step takes every so-many-th *number* from a on. Empty text or None: all of them. Raises SceneError for
    text that cannot be read and for frames that do not exist.
    """
    if text is None or not str(text).strip():
        return list(available)
    if not available:
        raise SceneError(f'--frames "{text}": there are no frames yet', key="frames")
    chosen: set[int] = set()
    for part in str(text).split(","):
        chosen.update(_one(part.strip(), str(text), available))
    return sorted(chosen)


def _one(part: str, text: str, available: list[int]) -> list[int]:
    """Frames of one item between commas."""
    pieces = [piece.strip() for piece in part.split(":")]
    if len(pieces) > 3 or not part or any(piece and not _NUMBER.fullmatch(piece) for piece in pieces):
        raise SceneError(f'--frames "{text}": cannot read "{part}"; {_HELP}', key="frames", expected=_HELP)
    if len(pieces) == 1:
        number = _counted(int(part), part, text, available)
        if number not in available:
            raise SceneError(f'--frames "{text}": there is no frame {part}; {_there_are(available)}', key="frames")
        return [number]
    first = _counted(int(pieces[0]), pieces[0], text, available) if pieces[0] else available[0]
    last = _counted(int(pieces[1]), pieces[1], text, available) if pieces[1] else available[-1]
    step = int(pieces[2]) if len(pieces) == 3 and pieces[2] else 1
    if step < 1:
        raise SceneError(f'--frames "{text}": the step is {step}, expected at least 1', key="frames")
    if last < first:
        raise SceneError(f'--frames "{text}": ends at {last} before it begins at {first}', key="frames")
    found = [index for index in available if first <= index <= last and (index - first) % step == 0]
    if not found:
        raise SceneError(f'--frames "{text}": no frame lies in it; {_there_are(available)}', key="frames")
    return found


def _counted(number: int, written: str, text: str, available: list[int]) -> int:
    """A frame number; negative ones count from the end."""
    if number >= 0 and not written.startswith("-"):
        return number
    if -number > len(available) or number == 0:
        raise SceneError(
            f'--frames "{text}": {written} counts from the end, but {_there_are(available)}', key="frames"
        )
    return available[number]


def _there_are(available: list[int]) -> str:
    if len(available) == 1:
        return f"there is only frame {available[0]}"
    return f"there are {len(available)} frames from {available[0]} to {available[-1]}"
