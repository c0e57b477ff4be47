"""All commands of ``viscoil``: their options, their help, and which part of the library they call."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

import viscoil
from viscoil.cli import show
from viscoil.errors import SceneError
from viscoil.keys import did_you_mean, listed

Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]
Settings = Annotated[list[str] | None, Parameter(name="--set", negative=(), metavar="KEY=VALUE")]
UNBROKEN = 1000  # columns of plain help in a pipe: each entry stays in one line
KINDS = ("scenes", "materials", "solvers", "looks", "cases")

app = App(
    name="viscoil",
    help="Viscoelastic fluids made of particles, from a scene file to frames on disk.",
    version=viscoil.__version__,
    help_format="plaintext",
    help_epilogue="Examples:\n  viscoil demo\n  viscoil list scenes\n  viscoil run dam_break\n"
    "  viscoil run my_scene.toml -o runs/first --set time.frames=50\n"
    "  viscoil plot runs/first\n\nEvery command has its own examples: viscoil run --help\n"
    "How a scene is written: viscoil help scene",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
app.command("viscoil.cli.benches:bench", name="bench", help="Measure speed.")


@Parameter(name="*")
@dataclass
class Machine:
    """Where the kernels run.

    Parameters
    ----------
    device
        auto, cpu, cuda, amdgpu, metal or vulkan.
    threads
        CPU threads; twice the cores by default, which suits shared machines.
    """

    device: str = "auto"
    threads: int | None = None


@Parameter(name="*")
@dataclass
class Folder:
    """Which folder a run goes to, and what happens to what is there.

    Parameters
    ----------
    output
        Run folder; by default runs/SCENE-NUMBER.
    resume
        Go on with the run in the folder.
    overwrite
        Replace the run in the folder.
    """

    output: Output = None
    resume: Annotated[bool, Parameter(negative=(), show_default=False)] = False
    overwrite: Annotated[bool, Parameter(negative=(), show_default=False)] = False


def dispatch(tokens: list[str]) -> int:
    """Parse and run one command; the exit code."""
    if not tokens:
        tokens = ["--help"]
    app.help_formatter, app.console = "default" if show.is_terminal() else "plain", None
    if not show.is_terminal() and {"help", "--help", "-h"} & set(tokens):
        from rich.console import Console

        app.console = Console(width=UNBROKEN)
    try:
        result = app(_repeat_set(tokens), exit_on_error=False, print_error=False)
    except CycloptsError as error:
        command = next((token for token in tokens if not token.startswith("-")), "")
        known = command if command in list(app) else ""
        raise SceneError(f"{error} See: viscoil {known + ' ' if known else ''}--help") from None
    return result if isinstance(result, int) else 0


def _repeat_set(tokens: list[str]) -> list[str]:
    """``--set a=1 b=2`` means ``--set a=1 --set b=2``."""
    result: list[str] = []
    after_set = False
    for token in tokens:
        previous_is_flag = bool(result) and result[-1] == "--set"
        if after_set and not previous_is_flag and re.match(r"[\w.\"' -]+=", token) and not token.startswith("-"):
            result.append("--set")
        after_set = token == "--set" or previous_is_flag or (after_set and bool(result) and result[-1] == "--set")
        result.append(token)
    return result


# --- looking around --------------------------------------------------------------------------------------------------
@app.command(
    name="help",
    help_epilogue="Examples:\n  viscoil help\n  viscoil help scene\n  viscoil help scene emitter\n"
    "  viscoil help scene solver.pbf.iterations\n  viscoil help run",
)
def help_(topic: str | None = None, key: str | None = None, /) -> int:
    """Explain: how a scene is written, with every table and key; or a command.

    Parameters
    ----------
    topic
        scene, or a command; what there is when left out.
    key
        With scene: a table or key, e.g. emitter, time.frames, shape.bowl, solver.pbf.iterations.
    """
    from viscoil.cli import helping

    names = [name for name in app if not name.startswith("-")]
    if topic is None:
        helping.overview()
        return dispatch(["--help"])
    if topic == "scene":
        helping.scene(key)
    elif topic in names:
        return dispatch([topic, *([key] if key else []), "--help"])
    else:
        raise helping.unknown(topic, names)
    return 0


@app.command(
    name="list",
    help_epilogue="Examples:\n  viscoil list\n  viscoil list materials\n  viscoil list cases\n"
    "  viscoil list scenes | xargs -n 1 viscoil check",
)
def list_names(kind: str | None = None, /) -> None:
    """List what viscoil knows: scenes, materials, solvers, looks, validation cases.

    Parameters
    ----------
    kind
        scenes, materials, solvers, looks or cases; all under headings when left out. Piped, one kind is names alone, one per
        line.
    """
    from viscoil.cli import listing

    if kind is not None and kind not in KINDS:
        raise SceneError(f'cannot list "{kind}".{did_you_mean(kind, KINDS)} Expected one of: {listed(KINDS)}')
    for name in KINDS if kind is None else (kind,):
        show.names(getattr(listing, name)(), heading=name if kind is None else "")


@app.command(help_epilogue="Examples:\n  viscoil check dam_break\n  viscoil check my_scene.toml --set spacing='5 mm'")
def check(scene: str, /, *, set_: Settings = None) -> None:
    """Check a scene without running it: every key, its size, what the solver cannot do.

    Parameters
    ----------
    scene
        Shipped name or .toml file.
    set_
        Change a key for this check, e.g. --set solver.iterations=8. May be repeated.
    """
    from viscoil.cli import running

    running.check(scene, set_ or [])


@app.command(help_epilogue="Examples:\n  viscoil schema > scene.schema.json")
def schema() -> None:
    """Print the JSON Schema of scene files, for editors that complete and check TOML."""
    import json

    from viscoil.scene.schema import Scene

    print(json.dumps(Scene.model_json_schema(), indent=2, ensure_ascii=False))


@app.command(help_epilogue="Examples:\n  viscoil doctor\n  viscoil doctor --device cuda")
def doctor(*, machine: Machine | None = None) -> int:
    """Say what is installed, which device is used and whether a small kernel runs on it."""
    from viscoil.cli import running

    return running.doctor(machine or Machine())


# --- running ---------------------------------------------------------------------------------------------------------
@app.command(
    help_epilogue="Examples:\n  viscoil run dam_break\n  viscoil run dam_break --frames 20 --device cpu --threads 2\n"
    "  viscoil run my_scene.toml -o runs/thick --set material.goo.viscosity='50 Pa s'\n"
    '  viscoil run dam_break --set quality="paper"\n  viscoil run runs/thick --resume --frames 400'
)
def run(
    scene: str, /, *, folder: Folder | None = None, frames: int | None = None, machine: Machine | None = None,
    set_: Settings = None,
) -> int:  # fmt: skip
    """Simulate a scene into a run folder. Ctrl-C saves; --resume goes on.

    Parameters
    ----------
    scene
        Shipped name, .toml file, or (with --resume) a run folder.
    frames
        Number of the last frame; by default time.frames of the scene.
    set_
        Change a key of the scene, e.g. --set solver.iterations=8. May be repeated.
    """
    from viscoil.cli import running

    return running.run(scene, folder or Folder(), frames, machine or Machine(), set_ or [])


@app.command(help_epilogue="Examples:\n  viscoil demo\n  viscoil demo -o /tmp/demo --frames 20")
def demo(*, output: Output = None, frames: int = 60, machine: Machine | None = None) -> int:
    """Simulate a small dam break and leave a picture, a film and a run folder.

    Parameters
    ----------
    output
        Folder for all; by default demo.
    frames
        Frames to simulate.
    """
    from viscoil.cli import running

    return running.demo(output or Path("demo"), frames, machine or Machine())


# --- looking at runs -------------------------------------------------------------------------------------------------
@app.command(help_epilogue="Examples:\n  viscoil info runs/dam_break-1")
def info(run: Path, /) -> None:
    """Describe a run folder: scene, state, frames, last numbers.

    Parameters
    ----------
    run
        Run folder.
    """
    from viscoil.cli import results

    results.info(run)


@app.command(help_epilogue="Examples:\n  viscoil plot runs/dam_break-1\n  viscoil plot runs/dam_break-1 -o density.png")
def plot(run: Path, /, *, output: Output = None) -> None:
    """Plot the metrics of a run.

    Parameters
    ----------
    run
        Run folder.
    output
        Picture to write; by default RUN/plot.png.
    """
    from viscoil.cli import results

    results.plot(run, output)


@app.command(
    help_epilogue="Examples:\n  viscoil export runs/dam_break-1 --to vtk\n"
    "  viscoil export runs/dam_break-1 --to usd --what all\n"
    "  viscoil export runs/dam_break-1 --to abc --frames 10:50 -o splash.abc\n"
    "  viscoil export runs/dam_break-1 --to glb --what surface --frames -1"
)
def export(
    run: Path, /, *, to: str, what: str = "particles",
    frames: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None, output: Output = None,
) -> None:  # fmt: skip
    """Write the frames of a run for other programs: Blender, Houdini, ParaView, the web.

    Parameters
    ----------
    run
        Run folder.
    to
        usd or abc (one file), vtk (.vtp series with .pvd), ply, npz or glb (one file per frame).
    what
        particles, surface or all. Solids come with each; surfaces that are missing are computed first.
    frames
        One frame (-1 is the last), a range as 10:50 or 10:50:2, or several with commas; by default all.
    output
        Folder to write to, by default RUN/export/FORMAT; for usd and abc also the file.
    """
    from viscoil.cli import results

    results.export(run, to, output, what, frames)


app.command(
    "viscoil.cli.caching:cache", name="cache", help="Show, fill or empty the cache of compiled kernels.",
    help_epilogue="Examples:\n  viscoil cache\n  viscoil cache --warm dam_break coiling\n  viscoil cache --warm dcpbd\n"
    "  viscoil cache --clear",
)  # fmt: skip


# --- seeing: each in a file of its own, loaded when it is asked for ----------------------------------------------------
app.command("viscoil.cli.surfaces:surface", name="surface", help="Compute the surface of the fluid for the frames of a run.")
app.command("viscoil.cli.renders:render", name="render", help="Make pictures of a run, and a film of them.")
app.command("viscoil.cli.renders:gallery", name="gallery", help="Draw every shipped scene at its telling moment.")
app.command("viscoil.cli.live:studio", name="studio", help="Simulate live in the browser: play, pull sliders, drag, record.")


# --- trust and speed -------------------------------------------------------------------------------------------------
@app.command(
    help_epilogue="Examples:\n  viscoil validate --quick\n  viscoil validate free_fall --plots plots\n"
    "  viscoil validate --json > report.json"
)
def validate(
    *cases: str, quick: Annotated[bool, Parameter(negative=(), show_default=False)] = False, plots: Path | None = None,
    json: Annotated[bool, Parameter(negative=(), show_default=False)] = False, machine: Machine | None = None,
) -> int:  # fmt: skip
    """Compare with known solutions; exits with 1 when a case is outside its tolerance.

    Parameters
    ----------
    cases
        Names of cases (see viscoil list cases); all when left out.
    quick
        Small versions, under three minutes in all.
    plots
        Folder for one picture per case.
    json
        Print JSON instead of a table.
    """
    from viscoil.cli import results

    return results.validate(list(cases), quick=quick, plots=plots, as_json=json, machine=machine or Machine())
