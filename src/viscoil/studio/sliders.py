"""Sliders of a scene: one per declared control, in physical units, the same in every browser."""

import time
from collections.abc import Callable
from typing import Any

from viscoil.controls import Control, Group

STILL = 1.0  # seconds after which a slider nobody touches takes over what the scene says


class Sliders:
    """The sliders of the present scene. ``change(path, value)`` is called when a hand moves one."""

    def __init__(self, gui: Any, parent: Any, change: Callable[[str, float | None], None]):
        self._gui, self._parent, self._change = gui, parent, change
        self._folders: list[Any] = []
        self._controls: dict[str, Control] = {}
        self._handles: dict[str, Any] = {}
        self._doubtful: set[str] = set()  # changes that were refused: the scene's value comes back at once
        self._touched: dict[str, float] = {}  # when a hand last moved them
        self._late: dict[str, float | None] = {}  # what the scene said meanwhile

    def build(self, groups: tuple[Group, ...]) -> None:
        """Sliders for these controls instead of those there were."""
        for folder in self._folders:
            folder.remove()
        self._folders, self._controls, self._handles = [], {}, {}
        self._doubtful.clear()
        self._touched, self._late = {}, {}
        with self._parent:
            for group in groups:
                folder = self._gui.add_folder(group.title)
                self._folders.append(folder)
                with folder:
                    for control in group.controls:
                        self._add(control)

    def _add(self, control: Control) -> None:
        handle = self._gui.add_slider(
            label(control, control.value), min=0, max=control.last, step=1,
            initial_value=control.position(control.value), marks=(), hint=_hint(control),
        )  # fmt: skip
        self._controls[control.path], self._handles[control.path] = control, handle

        @handle.on_update
        async def _(event: Any) -> None:
            if event.client is None:
                return  # set by the program, not by a hand
            self._touched[control.path] = time.perf_counter()
            self._late.pop(control.path, None)
            value = control.at(int(event.target.value))
            event.target.label = label(control, value)
            self._change(control.path, value)

    def refused(self, path: str) -> None:
        """A change of this control was not possible."""
        self._doubtful.add(path)

    def show(self, values: dict[str, float | None], at_once: bool = False) -> None:
        """Moves the sliders to what the scene says; not from under a hand, but once it is still (:meth:`settle`)."""
        for path, value in values.items():
            handle, control = self._handles.get(path), self._controls.get(path)
            if handle is None or control is None:
                continue
            touched = time.perf_counter() - self._touched.get(path, -STILL) < STILL
            if touched and not at_once and path not in self._doubtful:
                self._late[path] = value
                continue
            self._late.pop(path, None)
            self._doubtful.discard(path)
            position = control.position(value)
            if handle.value != position:
                handle.value = position
            handle.label = label(control, value)

    def settle(self) -> None:
        """Shows what was held back while hands were at work. Called now and then."""
        if self._late:
            self.show(dict(self._late))

    @property
    def paths(self) -> list[str]:
        """Keys of all controls shown."""
        return list(self._handles)


def label(control: Control, value: float | None) -> str:
    """What stands above a slider."""
    return f"{control.name}: {control.text(value)}"


def _hint(control: Control) -> str:
    return f"{control.help}\n{control.path}".strip() if control.help else control.path
