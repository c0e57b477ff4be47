"""``viscoil cache``: the compiled kernels on disk."""

from typing import Annotated, Any

from cyclopts import Parameter

from viscoil.cli import show
from viscoil.cli.commands import Machine
from viscoil.errors import SceneError

Flag = Annotated[bool, Parameter(negative=(), show_default=False)]


def cache(*names: str, warm: Flag = False, clear: Flag = False, machine: Machine | None = None) -> None:
    """Show the cache of compiled kernels: where it is and how large. Fill it ahead, or empty it.

    Parameters
    ----------
    names
        With --warm: scenes (shipped or .toml files) or methods, all of whose shipped scenes are taken; left out: every
        shipped scene.
    warm
        Compile now what these scenes need, so that their runs start at once.
    clear
        Remove the compiled kernels of all versions first.
    """
    from viscoil import cache as kernels
    from viscoil.scene.size import readable

    if names and not warm:
        raise SceneError(f"cache: names are for --warm; expected: viscoil cache --warm {' '.join(names)}")
    scenes = _scenes(names) if warm else {}
    if clear:
        print(f"removed {readable(kernels.clear())}")
    if warm:
        _warm(scenes, machine or Machine())
    found = kernels.contents()
    show.pairs(
        [
            ("folder", found.folder),
            ("kernels", found.kernels),
            ("size", readable(found.bytes)),
            ("other versions", f"{found.others}, {readable(found.other_bytes)}" if found.others else "none"),
        ]
    )


def _scenes(names: tuple[str, ...]) -> dict[str, Any]:
    """The scenes meant by names, checked before anything is compiled."""
    from viscoil.scene.load import load, shipped
    from viscoil.solvers import SOLVERS

    library = {name: load(name) for name in shipped()} if not names or set(names) & set(SOLVERS) else {}
    scenes: dict[str, Any] = {} if names else library
    for name in names:
        if name in SOLVERS:
            found = {scene_name: scene for scene_name, scene in library.items() if scene.method == name}
            if not found:
                raise SceneError(f"cache: no shipped scene uses {name}; expected a scene file that does")
            scenes |= found
        else:
            scenes[name] = library.get(name) or load(name)
    return scenes


def _warm(scenes: dict[str, Any], machine: Machine) -> None:
    from viscoil.cli.running import check_machine
    from viscoil.warm import warm

    check_machine(machine)
    for name, scene in scenes.items():
        done = warm(scene, machine.device, machine.threads)
        print(f"{name}: {done.read} kernels compiled, {done.loaded} were ready, {done.seconds:.1f} s", flush=True)
