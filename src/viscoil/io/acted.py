"""What acted of what was asked: the rows of a run's metrics, judged and said in sentences.

Two things can be less than a scene asks for without anything failing. Where a method solves for the stress by iterations, as
many as it is given, `viscosity_share` says how much of the asked viscosity or modulus acted in the last step of a frame: less
than ENOUGH is said, whenever it happens. `compression` says by how much the fluid is denser than it should be in the mean, with
every method: more than DENSE is said once it has stood for STANDING frames, because a splash is compressed for a moment.

Each sentence names the setting that would help, with a value: what is asked for is in the scene as it was run.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

ENOUGH = 0.8  # share of the asked viscosity or modulus
DENSE = 0.03  # mean compression, relative
STANDING = 10  # frames in a row
GENEROUS = 400  # velocity iterations that a tolerance seldom needs: more of them cost nothing where it ends them earlier
FELT = 1e-6  # of the kinetic energy, that friction takes in a step: less is the rounding of velocities, as in free fall
TIGHT = 1e-4  # residual of velocities; below, float32 has little to give
MOST = 1000  # iterations that solvers take at most

JUDGED = ("frame", "viscosity_share", "friction_energy", "kinetic_energy", "residual", "compression")

Settings = Mapping[str, Any]  # a scene as it was run, as tables: see Scene.to_dict


class Watch:
    """Judges a run while it goes on; frame 0, the initial state, is nothing's result."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._rows: dict[int, tuple[float, float]] = {}  # frame -> (share, compression), both relative
        self._worst: dict[str, Any] = {}  # row of the frame with the least share

    def add(self, row: Mapping[str, Any]) -> None:
        """One more frame's row of metrics."""
        if not row["frame"] > 0:
            return
        share, compression = _number(row, "viscosity_share"), _number(row, "compression")
        if _number(row, "friction_energy") <= FELT * _number(row, "kinetic_energy"):
            share = 1.0
        self._rows[int(row["frame"])] = share, compression
        if share < ENOUGH and share < _number(self._worst, "viscosity_share", math.inf):
            self._worst = dict(row)

    def words(self) -> dict[str, str]:
        """What of the last frame belongs into the line that tells how a run gets on; nothing where all is well."""
        last = max(self._rows, default=0)
        recent = [self._rows[frame] for frame in range(last - STANDING + 1, last + 1) if frame in self._rows]
        words = {}
        if recent and recent[-1][0] < ENOUGH:
            words["share"] = f"only {percent(recent[-1][0])} of the viscosity acts"
        if len(recent) == STANDING and all(compression > DENSE for _, compression in recent):
            words["compression"] = f"compressed by {percent(recent[-1][1])}"
        return words

    def sentences(self) -> list[str]:
        """What the run as a whole has to say; nothing where all is well."""
        return [text for text in (self._about_share(), self._about_compression()) if text]

    def _about_share(self) -> str:
        low = [frame for frame, (share, _) in self._rows.items() if share < ENOUGH]
        if not low:
            return ""
        least = f"{percent(self._worst['viscosity_share'])} in frame {self._worst['frame']}"
        frames = f"{len(low)} of {len(self._rows)} frames" if len(self._rows) > 1 else "the only frame"
        return (
            f"less than {percent(ENOUGH)} of the asked viscosity or modulus acted in {frames}: {least} at the least; the "
            f"material flowed as a thinner one would. {_more_share(self._settings, self._worst)}"
        )

    def _about_compression(self) -> str:
        longest, largest, now, peak, before = 0, 0.0, 0, 0.0, -1
        for frame, (_, compression) in sorted(self._rows.items()):
            if not compression > DENSE:
                now, peak = 0, 0.0
            else:
                follows = frame == before + 1
                now, peak = (now + 1, max(peak, compression)) if follows else (1, compression)
            if now >= STANDING:
                longest, largest = max(longest, now), max(largest, peak)
            before = frame
        if not longest:
            return ""
        return (
            f"the fluid was compressed by more than {percent(DENSE)} in the mean for {longest} frames in a row, by "
            f"{percent(largest)} at the most. {_less_compression(self._settings)}"
        )


def judged(columns: Mapping[str, Sequence[Any]], settings: Settings) -> list[str]:
    """The sentences about a whole run, from its metrics by column (see Run.metrics) and its scene as tables."""
    watch = Watch(settings)
    for row in rows_of(columns):
        watch.add(row)
    return watch.sentences()


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """The rows of a table of metrics, with what is judged."""
    names = [name for name in JUDGED if name in columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*(columns[name] for name in names), strict=True)]


def percent(share: float) -> str:
    """0.8 -> "80 %", 0.0234 -> "2.3 %"."""
    return f"{100 * share:.2g} %"


def _number(row: Mapping[str, Any], key: str, otherwise: float = math.nan) -> float:
    """A number of a row; nan, which is neither small nor large, where it has none."""
    value = row.get(key, otherwise)
    return float(value) if value not in ("", None) else otherwise


# --- what would help ---------------------------------------------------------------------------------------------------


def _more_share(settings: Settings, row: Mapping[str, Any]) -> str:
    """With which setting more of the viscosity would have acted in the frame of that ``row``."""
    solver = settings.get("solver", {})
    iterations, tolerance = solver.get("velocity_iterations", GENEROUS), solver.get("velocity_tolerance", 0.0)
    if solver.get("mode") == "paper":
        return 'What helps: solver.mode = "corrected" (now "paper"), or solver.method = "dcpbd".'
    if solver.get("projection", "cg") != "cg":
        return f'What helps: solver.projection = "cg" (now "{solver["projection"]}").'
    reached = _number(row, "residual", math.inf) <= tolerance
    if reached and tolerance > TIGHT:  # what is missing goes with the residual: until a tenth is
        tighter = tolerance * min(0.5, 0.1 / (1 - _number(row, "viscosity_share")))
        return f"What helps: solver.velocity_tolerance = {max(tighter, TIGHT):.1g} (now {tolerance:g})."
    if iterations < MOST and not reached:
        more = GENEROUS if iterations < GENEROUS else MOST
        ends = "; they end at solver.velocity_tolerance" if tolerance else ', or solver.method = "dcpbd"'
        return f"What helps: solver.velocity_iterations = {more} (now {iterations}){ends}."
    return f"What helps: {_shorter_steps(settings)}."


def _less_compression(settings: Settings) -> str:
    """With which setting the fluid would keep its volume better."""
    solver = settings.get("solver", {})
    if solver.get("method") == "pvfs":
        return _less_compression_of_springs(solver)
    iterations, tolerance, steps = solver.get("iterations"), solver.get("tolerance"), _shorter_steps(settings)
    if tolerance is not None and tolerance > DENSE / 3:
        return f"What helps: solver.tolerance = {DENSE / 10:g} (now {tolerance:g})."
    if iterations is None or iterations >= MOST:
        return f"What helps: {steps}."
    if tolerance == 0 and str(solver.get("method")).endswith("iisph"):
        least = max(50, 2 * iterations)
        return (
            f"What helps: solver.tolerance = 0.001 and solver.iterations = {least} (now always {iterations}), "
            f"or {steps}."
        )
    return f"What helps: solver.iterations = {min(2 * iterations, MOST)} (now {iterations}), or {steps}."


def _less_compression_of_springs(solver: Mapping[str, Any]) -> str:
    """The same for PVFS, which is never without."""
    stiffness, asked, substeps = solver.get("stiffness"), solver.get("compressibility", 0.1), solver.get("substeps")
    less = f"solver.compressibility = {asked / 2:.2g} (now {asked:g})"
    if stiffness is not None:
        less = f"solver.stiffness = {2 * stiffness:.3g} (now {stiffness:.3g})"
    steps = "with up to 1.4 times the steps"  # Δt goes with the root of the stiffness
    if substeps is not None:
        steps = f"with solver.substeps = {math.ceil(math.sqrt(2) * substeps)} (now {substeps})"
    return (
        "PVFS is never without: it yields to the depth by what it may and crowds particles at walls and surfaces "
        f"(docs/materials.md). What helps: {less}, {steps}."
    )


def _shorter_steps(settings: Settings) -> str:
    """Steps of half the length, by the key that the scene sets them with."""
    time = settings.get("time", {})
    if time.get("steps_per_frame"):
        return f"time.steps_per_frame = {2 * time['steps_per_frame']} (now {time['steps_per_frame']})"
    key = "step" if time.get("step") else "cfl"
    return f"time.{key} = {time[key] / 2:.3g} (now {time[key]:g})" if time.get(key) else "shorter steps"
