"""The surface's process: turns the latest frame into a mesh while the simulation goes on."""

import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from viscoil.errors import ViscoilError
from viscoil.io.frame import Frame
from viscoil.studio.link import leave_interrupts_to_the_parent
from viscoil.studio.memory import keep_flat
from viscoil.studio.messages import Arrays, Problem, receive_arrays, send_arrays


@dataclass(frozen=True)
class Wanted:
    """Announces a frame whose surface is wanted."""

    header: dict[str, Any]
    serial: int


@dataclass(frozen=True)
class Made:
    """Announces a mesh: arrays ``vertices``, ``triangles`` and one per field of its vertices."""

    header: dict[str, Any]
    serial: int


def main(pipe: Connection) -> None:
    """The process: one mesh per frame it is given, until the pipe closes."""
    leave_interrupts_to_the_parent()
    keep_flat()
    while True:
        try:
            message = pipe.recv()
            if not isinstance(message, Arrays):
                return
            arrays = receive_arrays(pipe, message)
            _answer(pipe, message.content, arrays)
        except (EOFError, OSError):
            return


def _answer(pipe: Connection, wanted: Wanted, arrays: dict[str, Any]) -> None:
    try:
        mesh = Frame.from_header(wanted.header, arrays).surface(quality="live")
    except ViscoilError as error:
        pipe.send(Problem(str(error)))
        return
    except Exception as error:  # of a library: say so and wait for the next frame
        traceback.print_exc()
        pipe.send(Problem(f"the surface could not be computed: {type(error).__name__}: {error}"))
        return
    fields = {f"field {name}": values for name, values in mesh.fields.items()}
    made = {"vertices": mesh.vertices, "triangles": mesh.triangles, **fields}
    send_arrays(pipe, Made({"time": mesh.time, "index": mesh.index, "materials": mesh.materials}, wanted.serial), made)


def fields_of(arrays: dict[str, Any]) -> dict[str, Any]:
    """The vertex fields among the arrays of a mesh."""
    return {name.removeprefix("field "): values for name, values in arrays.items() if name.startswith("field ")}
