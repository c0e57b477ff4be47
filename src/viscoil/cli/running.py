"""Commands that simulate or get ready to: check, run, demo, doctor."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

from viscoil.cli import INTERRUPTED, show
from viscoil.errors import RunFolderError, SceneError

DEMO_SCENE = "dam_break"
DEMO_FILM = (640, 360)  # pixels
DEMO_SPEED = 0.5  # of its film: water at this size moves too fast to be watched


def check(scene_name: str, settings: list[str]) -> None:
    """Load, check and describe a scene."""
    from viscoil.material import unsupported
    from viscoil.scene.load import load, profiles
    from viscoil.scene.mesh_checks import thin_notes
    from viscoil.solvers import solver_class

    scene = load(scene_name, set_strings=settings)
    size = scene.check_size()
    time = scene.time
    step = next(f"{key} = {getattr(time, key):g}" for key in ("steps_per_frame", "step", "cfl") if getattr(time, key))
    show.pairs(
        [
            ("scene", scene.title or scene_name),
            ("quality", f"{scene.quality} (of {', '.join(profiles(scene_name))})"),
            ("solver", scene.method),
            ("size", size),
            ("spacing", f"{scene.spacing:g} m"),
            ("time", f"{time.frames} frames of {time.frame_time:g} s, {scene.end_time:g} s in all, {step}"),
            ("materials", ", ".join(scene.fluid_materials())),
            ("solids", len(scene.solid)),
            ("particle solids", len(scene.particle_solid)),
            ("emitters", len(scene.emitter)),
        ]
    )
    honours = solver_class(scene.method).honours
    for name, material in scene.fluid_materials().items():
        for message in unsupported(material, honours):
            print(f"note: {scene.method} cannot honour everything about {name}: {message}")
    for message in thin_notes(scene):
        print(f"note: {message}")
    print("ok")


def run(scene_name: str, folder: Any, frames: int | None, machine: Any, settings: list[str]) -> int:
    """Simulate a scene into its folder, or go on with it."""
    from viscoil.io.run import Run
    from viscoil.scene.load import load, shipped

    if frames is not None and frames < 0:
        raise SceneError(f"--frames: expected a whole number, at least 0; got {frames}", key="time.frames")
    if folder.resume and folder.overwrite:
        raise SceneError("--resume and --overwrite contradict each other; expected one of them")
    # A folder that happens to have the name of a shipped scene only counts when a run is to be resumed.
    is_run = Run.resumable(scene_name) and (folder.resume or scene_name not in shipped())
    if is_run and not folder.resume:
        raise SceneError(f"{scene_name} is a run folder; add --resume to go on with it, or give a scene")
    path = folder.output or (Path(scene_name) if is_run else None) or _default_folder(scene_name, folder.resume)
    overrides = {} if frames is None else {"time.frames": frames}
    scene = load(Path(scene_name) / "scene.toml" if is_run else scene_name, overrides, set_strings=settings)
    check_machine(machine)
    scene.check_size()
    if folder.resume and Run.resumable(path):
        target = Run.open(path)
    else:
        if folder.resume and not (path.is_dir() and (path / "scene.toml").is_file()):
            raise RunFolderError(f"there is no run to resume in {path}; leave out --resume to start one.")
        if Run.resumable(path) and not folder.overwrite:  # said before the minutes a large scene takes to build
            raise RunFolderError(f"{path} already holds a run; add --resume or --overwrite, or choose another with -o.")
        target = None
    whole = target is None and frames is None and not settings
    larger = _pictured(scene_name, scene) if whole else None
    if larger is not None:
        print(f"note: {_larger_words(scene, larger)}", file=sys.stderr)
    code, report = _simulate(scene, path, target, machine, folder.overwrite)
    if code == 0:
        print("next:", file=sys.stderr)
        same = not settings and not is_run  # a run's own file knows what was set
        show.pairs(_next_steps(scene_name if same else path / "scene.toml", path, larger, report), sys.stderr)
    return code


def _pictured(scene_name: str, scene: Any) -> Any:
    """The scene in the quality its picture in the gallery has, where that is a larger one."""
    from viscoil.scene.load import load, profiles

    quality = scene.picture.quality if scene.picture else scene.quality
    if quality == scene.quality or quality not in profiles(scene_name):  # a scene as it was run has no profiles any more
        return None
    other = load(scene_name, quality=quality)
    return other if other.estimate().particles > scene.estimate().particles else None


def _larger_words(scene: Any, larger: Any) -> str:
    """What is simulated, and what the gallery shows."""
    from viscoil.scene.size import particle_steps

    now, then = (f"about {rounded(size.estimate().particles):,} particles" for size in (scene, larger))
    here, there = particle_steps(scene), particle_steps(larger)
    more = f", about {rounded(there / here, 1 if there < 10 * here else 2):g} times the work" if here and there else ""
    return (
        f"this is the {scene.quality} size, {now}; the picture in the gallery is made with --set quality={larger.quality}: "
        f"{then}{more}"
    )


def rounded(number: float, digits: int = 2) -> int:
    """With so many significant digits: estimates are no better."""
    return int(float(f"{number:.{digits - 1}e}"))


def _next_steps(scene: str | Path, path: Path, larger: Any, report: Any) -> list[tuple[str, str]]:
    """What can be done with the run of ``scene`` at ``path``: (what for, command)."""
    run, film = shlex.quote(str(path)), shlex.quote(f"{path.name}.mp4")
    rows = [
        ("picture", f"viscoil render {run} --fast   (without --fast: path traced, in minutes)"),
        ("film", f"viscoil render {run} --fast --film {film}"),
        ("live", f"viscoil studio {shlex.quote(str(scene))}"),
        ("numbers", f"viscoil info {run}"),
    ]
    if larger is not None:
        from viscoil.scene.size import particle_steps

        work = particle_steps(larger)
        known = work and report.particle_steps and report.seconds
        time = f"   (about {show.about(report.seconds * work / report.particle_steps)} here)" if known else ""
        rows.append(("larger", f"viscoil run {shlex.quote(str(scene))} --set quality={larger.quality}{time}"))
    return rows


def _simulate(scene: Any, path: Path, existing: Any, machine: Any, overwrite: bool) -> tuple[int, Any]:
    """Compute the frames of ``scene`` in the run folder at ``path`` and say where they are; exit status and progress."""
    from viscoil import backend
    from viscoil.cli.progress import report
    from viscoil.io.execute import execute
    from viscoil.io.run import Run
    from viscoil.particles import allocated
    from viscoil.scene.size import readable
    from viscoil.simulate import Simulation

    simulation = Simulation(scene, device=machine.device, threads=machine.threads)
    details = {"device": backend.current().device, "command": shlex.join(["viscoil", *sys.argv[1:]])}
    folder = existing or Run.create(path, scene, details, overwrite=overwrite)
    with report() as progress:
        outcome = execute(simulation, folder, scene.time.frames, progress)
    print(outcome.message)
    for text in outcome.acted:
        print(f"note: {text}")
    held, particles = allocated(), max(simulation.particles, 1)
    show.pairs(
        [
            ("memory", f"{readable(held)} of arrays, {held / particles:.0f} B per particle"),
            ("frames", path / "frames" / "frames.vtkhdf.series"),
            ("numbers", path / "metrics.csv"),
            ("scene", path / "scene.toml"),
            ("log", path / "log.txt"),
        ]
    )
    return INTERRUPTED if outcome.status == "interrupted" else 0, progress


def check_machine(machine: Any) -> None:
    """Refuse a device or thread count that cannot be, before any work is done."""
    from viscoil import backend

    backend.choose(machine.device)
    if machine.threads is not None and machine.threads < 1:
        raise SceneError(f"--threads: expected a whole number, at least 1; got {machine.threads}")


def _default_folder(scene_name: str, resume: bool) -> Path:
    """runs/NAME-NUMBER: the next free number, or with ``resume`` the newest one there is."""
    name = re.sub(r"[^\w-]+", "_", Path(scene_name).stem) or "scene"
    numbers = [
        int(match[1])
        for entry in Path("runs").glob(f"{name}-*")
        if (match := re.fullmatch(rf"{re.escape(name)}-(\d+)", entry.name))
    ]
    if resume and not numbers:
        raise RunFolderError(f"there is no run of {name} in runs to resume; say which with -o FOLDER.")
    return Path("runs") / f"{name}-{max(numbers, default=0) + (0 if resume else 1)}"


def demo(folder: Path, frames: int, machine: Any) -> int:
    """A small run, its picture and its film."""
    if frames < 1:
        raise SceneError(f"--frames: expected a whole number, at least 1; got {frames}", key="time.frames")
    from viscoil.scene.load import load

    check_machine(machine)
    scene = load(DEMO_SCENE, {"time.frames": frames})
    path = folder / "run"
    code, _ = _simulate(scene, path, None, machine, overwrite=True)
    if code == 0:
        show.pairs([*_shown(folder, path, scene), ("run", path)])
    return code


def _shown(folder: Path, path: Path, scene: Any) -> list[tuple[str, Any]]:
    """A picture and a film of the demo, drawn in a few seconds; better where the packages for it are installed."""
    from viscoil.cli.renders import Progress
    from viscoil.errors import MissingExtra, install_command
    from viscoil.extras import require
    from viscoil.io.run import Run
    from viscoil.render.film import write_film
    from viscoil.render.job import Settings, draw, frames_per_second, render_run, scenery
    from viscoil.view.camera import View

    run, view = Run.open(path), scene.picture
    settings = Settings(fast=True, size=DEMO_FILM, view=View(view.azimuth, view.elevation, view.zoom, view.field_of_view))
    chosen = run.frames[:: 2 if len(run.frames) > 20 else 1]
    with Progress() as progress:
        outcome = render_run(run, chosen, settings, progress=progress.frame)
    try:
        require("imageio_ffmpeg", "to write .mp4 films")
        kind = ".mp4"
    except MissingExtra:
        kind = ".webp"
    rate = DEMO_SPEED * frames_per_second(run, chosen)
    film = write_film(outcome.paths.values(), folder / f"{DEMO_SCENE}{kind}", rate)
    telling = min(run.frames, key=lambda index: abs(index * scene.time.frame_time - view.time))
    large = Settings(fast=True, view=settings.view)
    image = folder / f"{DEMO_SCENE}.png"
    draw(run.frame(telling), large, scenery([run.frame(telling)], large)).save(image)
    note = f"drawn as particles; for surfaces: {install_command('surface')}" if settings.how() == "particles" else ""
    return [("picture", image), ("film", film), ("note", note), ("pictures", run.path / "render")]


def doctor(machine: Any) -> int:
    """Versions, device, memory, and whether a kernel ran; 1 when it did not."""
    from viscoil import backend, native
    from viscoil.scene.size import available_memory, readable

    check_machine(machine)
    backend.start(machine.device, machine.threads)
    found = backend.describe()
    memory = available_memory()
    found |= {"compiled passes": native.describe(), "memory free": readable(memory) if memory else "unknown"}
    show.pairs(list(found.items()))
    return 0 if found["kernel ran"] else 1
