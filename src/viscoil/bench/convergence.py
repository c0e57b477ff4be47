"""Error against time: what a second of computing buys with each way to iterate.

Five cases, of which the first three ask how incompressible a liquid is and the others how viscous one is:

    column  water at rest: mean compression by its weight
    dam     water that falls: mean compression over the run
    blow    water that falls onto the floor of its tank as a whole: how fast it jumps, which what cannot be compressed does not
    cube    a cube that slumps under its weight: how far its centre of mass is from that of short, exact steps
    coil    a rope of honey that coils: |ΩR/U₁ − 1|, 0 for a rope that lays itself down where it arrives

Every row is one way to iterate, with as many iterations and as long steps as it says. "Seconds" are of a simulated one,
accounts of frames included, from the quickest quarter of the frames; on a CPU the time of all threads by their number, which
others on a busy machine disturb less than the clock.
"""

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from viscoil import backend
from viscoil.bench import store
from viscoil.bench.plots import tidy
from viscoil.errors import ViscoilError

CASES = ("column", "dam", "blow", "cube", "coil")
WAYS: dict[str, dict[str, Any]] = {
    "jacobi": {"acceleration": "none"},
    "momentum": {"acceleration": "momentum", "warm_start": 0.0},
    "momentum, warm": {"acceleration": "momentum", "warm_start": 0.5},
}
SPACING = 0.02  # m, of column and dam
STEP = 0.004  # s, the same
CUBE = (0.32, 0.5, 1000.0)  # edge [m], kinematic viscosity [m²/s], density [kg/m³]
SLUMP = (0.1, 0.2, 0.3)  # s, when cubes are compared
UNITS = {"column": "mean compression [%]", "dam": "mean compression [%]",
         "blow": "jump [% of the speed before]", "cube": "centre of mass, deviation [%]",
         "coil": "|ΩR/U₁ − 1| [%]"}  # fmt: skip


def _water(
    size: tuple[float, ...], tank: tuple[float, ...], spacing: float, dt: float, span: float, solver: dict[str, Any]
) -> Any:
    """A block of water in the corner of a tank; frames of four steps."""
    from viscoil.scene.schema import Scene

    return Scene(
        spacing=spacing, time={"frames": math.ceil(span / (4 * dt)), "frame_time": 4 * dt, "steps_per_frame": 4}, solver=solver,
        fluid=[{"material": "water", "shape": {"type": "box", "size": size, "position": [s / 2 for s in size]}}],
        solid=[{"container": True, "shape": {"type": "box", "size": tank, "position": [s / 2 for s in tank]}}],
    )  # fmt: skip


def _cube(count: int, steps: float, span: float, solver: dict[str, Any]) -> Any:
    """A cube of ``count``³ particles on the ground; ``steps`` per second, one per frame."""
    from viscoil.scene.schema import Scene

    edge, nu, density = CUBE
    return Scene(
        spacing=edge / count, time={"frames": round(span * steps), "frame_time": 1 / steps, "steps_per_frame": 1},
        solver={"method": "dcpbd", **solver}, material={"paste": {"density": density, "viscosity": density * nu}},
        fluid=[{"material": "paste", "shape": {"type": "box", "size": (edge,) * 3, "position": (0, edge / 2, 0)}}],
        solid=[{"friction": "no-slip", "shape": {"type": "plane"}}],
    )  # fmt: skip


def _clock() -> float:
    """Seconds, see above."""
    now = backend.current()
    return perf_counter() if now.is_gpu else process_time() / min(now.threads, os.cpu_count() or 1)


def _run(scene: Any, device: str, threads: int | None) -> dict[str, Any]:
    """Metrics of all frames, and the seconds that a simulated one takes."""
    from viscoil.simulate import Simulation

    sim = Simulation(scene, device, threads)
    rows, taken = [], []
    while sim.frame_index < scene.time.frames:
        begin = _clock()
        sim.advance_frame()
        rows.append(sim.metrics())
        taken.append(_clock() - begin)
    quick = sorted(taken[1:])[: max(1, len(taken) // 4)]
    return {
        "rows": rows, "seconds": float(np.mean(quick)) / scene.time.frame_time,
        "per_step": sum(r["iterations"] for r in rows) / max(1, sum(r["steps"] for r in rows)),
    }  # fmt: skip


def _incompressible(case: str, quick: bool) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """(way, Δt [s], solver) of the cases of water."""
    for count in (4, 8) if quick else (2, 4, 8, 16, 32):
        for way, keys in WAYS.items():
            yield way, STEP, {"method": "pbf", "iterations": count, **keys}
    if not quick:
        for parts in (2, 4):  # shorter steps instead of iterations
            yield f"1/{parts} of the step, momentum, warm", STEP / parts, {"method": "pbf", "iterations": 8 // parts}
        yield "twice the step, momentum, warm", 2 * STEP, {"method": "pbf", "iterations": 16}
    for tolerance in (1e-3,) if quick else (2e-3, 5e-4, 1e-4):
        for way, keys in (("iisph, jacobi", WAYS["jacobi"]), ("iisph, momentum", {"acceleration": "momentum"})):
            yield way, STEP / 2, {"method": "iisph", "correction": "none", "iterations": 500, "tolerance": tolerance, **keys}


def _water_rows(case: str, quick: bool, device: str, threads: int | None) -> Iterator[dict[str, Any]]:
    high, d = 0.8, 2 * SPACING if quick else SPACING * (1 if case == "column" else 1.25)
    size, tank = ((6 * d, high, 6 * d), (6 * d, 2 * high, 6 * d)) if case == "column" else ((0.4, high, 0.3), (1.6, 2.4, 0.3))
    span = (0.2 if quick else 1.0) if case == "column" else (0.1 if quick else 0.8)
    for way, dt, solver in _incompressible(case, quick):
        found = _run(_water(size, tank, d, dt, span, solver), device, threads)
        rows = found["rows"]
        late = rows[-max(1, len(rows) // 5) :] if case == "column" else rows
        yield {
            "case": case, "way": way, "step_ms": 1e3 * dt, "iterations": found["per_step"],
            "error": 100 * float(np.mean([r["compression"] for r in late])),
            "largest": 100 * float(np.mean([r["density_max"] for r in late]) - 1),
            "seconds": found["seconds"], "particles": rows[-1]["particles"],
        }  # fmt: skip


def _blow_rows(quick: bool, device: str, threads: int | None) -> Iterator[dict[str, Any]]:
    """A block as wide as its tank, one metre per second fast, a spacing over the floor."""
    d = 2 * SPACING
    size, tank, span = (8 * d, 6 * d, 8 * d), (8 * d, 24 * d, 8 * d), 0.032 if quick else 0.24
    for count in (4,) if quick else (4, 8, 16):
        for way, keys in WAYS.items():
            scene = _water(size, tank, d, STEP, span, {"method": "pbf", "iterations": count, **keys})
            scene.fluid[0].shape.position = (size[0] / 2, size[1] / 2 + d, size[2] / 2)
            scene.fluid[0].velocity = (0.0, -1.0, 0.0)
            found = _run(scene, device, threads)
            rows, mass = found["rows"], 1000.0 * d**3 * found["rows"][0]["particles"]
            yield {
                "case": "blow", "way": way, "step_ms": 1e3 * STEP, "iterations": found["per_step"],
                "error": 100 * max(0.0, max(r["momentum_y"] for r in rows) / mass),
                "largest": 100 * float(max(r["density_max"] for r in rows) - 1),
                "seconds": found["seconds"], "particles": rows[-1]["particles"],
            }  # fmt: skip


def _viscous(quick: bool) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """(way, steps per second, solver) of the cube."""
    for steps in (60,) if quick else (120, 60, 30):
        yield "cg", steps, {}
    for projection in ("chebyshev", "jacobi"):
        for count in (20,) if quick else (20, 40, 80):
            yield projection, 60, {"projection": projection, "velocity_iterations": count}
    for tolerance in (0.05,) if quick else (0.003, 0.02, 0.03, 0.1):
        yield f"cg to {tolerance:g}", 60, {"velocity_tolerance": tolerance}
    for count in (2,) if quick else (1, 2, 8):
        yield f"cg, {count} contact rounds", 60, {"contact_rounds": count}
    for count in (3,) if quick else (3, 10):
        for way, keys in WAYS.items():
            yield f"cg, {count} density iterations, {way}", 60, {"iterations": count, **keys}


def _heights(rows: list[dict[str, Any]]) -> np.ndarray:
    return np.interp(SLUMP, [r["time"] for r in rows], [r["centre_of_mass_y"] for r in rows])


def _cube_rows(quick: bool, device: str, threads: int | None) -> Iterator[dict[str, Any]]:
    count, span = (8, 0.1) if quick else (20, 0.32)
    exact = {"velocity_tolerance": 1e-3, "velocity_iterations": 1000, "iterations": 20}
    best = _heights(_run(_cube(count, 120 if quick else 480, span, exact), device, threads)["rows"])
    for way, steps, solver in _viscous(quick):
        found = _run(_cube(count, steps, span, solver), device, threads)
        rows = found["rows"]
        velocity = sum(r["velocity_iterations"] for r in rows) / len(rows)
        yield {
            "case": "cube", "way": way, "step_ms": 1e3 / steps, "iterations": velocity,
            "error": 100 * float(np.abs(_heights(rows) / best - 1).max()),
            "largest": 100 * float(np.mean([r["compression"] for r in rows])),
            "seconds": found["seconds"], "particles": rows[-1]["particles"],
        }  # fmt: skip


def _coil_rows(quick: bool, device: str, threads: int | None) -> Iterator[dict[str, Any]]:
    from viscoil.scene.schema import Scene
    from viscoil.simulate import Simulation
    from viscoil.validation import coil

    warm = WAYS["momentum, warm"]
    loose = warm | {"velocity_tolerance": 0.03}
    for way, keys in [("jacobi", WAYS["jacobi"]), ("momentum, warm", warm), ("momentum, warm, cg to 0.03", loose)]:
        begin = coil.SMALL[4]
        table = coil.scene(*coil.SMALL[:4])
        table["solver"] |= keys
        if quick:
            table["time"]["frames"] = 4
            table["spacing"] = 0.005
        sim = Simulation(Scene(**table), device, threads)
        start = _clock()
        if quick:
            for _ in sim.frames():
                pass
            error = math.nan
        else:
            rope = coil.measure(sim, begin)
            error = 100 * abs(rope["frequency"] * rope["R"] / rope["U1"] - 1)
        row = sim.metrics()
        yield {
            "case": "coil", "way": way, "step_ms": 1e3 / 240, "iterations": row["velocity_iterations"] / max(1, row["steps"]),
            "error": error if math.isfinite(error) else None, "largest": 100 * row["compression"],
            "seconds": (_clock() - start) / sim.time, "particles": row["particles"],
        }  # fmt: skip


def main(
    device: str = "auto", threads: int | None = None, json: Path | None = None,
    say: Callable[[str], None] = lambda text: None, cases: str = "all", quick: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Measures the cases named (separated by commas); ``quick``: tiny, to see that it works."""
    names = CASES if cases == "all" else tuple(name.strip() for name in cases.split(","))
    for name in names:
        if name not in CASES:
            raise ViscoilError(f"--cases: no case {name}; expected some of {', '.join(CASES)}, or all")
    backend.start(device, threads)
    result = store.opened("convergence", f"viscoil bench convergence --cases {','.join(names)}", quick=quick)
    for name in names:
        rows = {"blow": _blow_rows, "cube": _cube_rows, "coil": _coil_rows}.get(name)
        for row in rows(quick, device, threads) if rows else _water_rows(name, quick, device, threads):
            result["rows"].append(row)
            say(f"{name}: {row['way']}, {row['iterations']:.3g} iterations: {_number(row['error'])} in {row['seconds']:.3g} s")
            store.write(json, result)
    return result


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def tables(result: dict[str, Any]) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """One table per case."""
    found = []
    for case in CASES:
        rows = [r for r in result["rows"] if r["case"] == case]
        if rows:
            other = "mean compression [%]" if case in ("cube", "coil") else "largest [%]"
            heads = ("way", "Δt [ms]", "iterations per step", UNITS[case], other, "s per simulated s")
            lines = [
                (r["way"], f"{r['step_ms']:.3g}", f"{r['iterations']:.3g}", _number(r["error"]), _number(r["largest"]),
                 f"{r['seconds']:.3g}")
                for r in rows
            ]  # fmt: skip
            found.append((f"{case}, {rows[0]['particles']} particles", heads, lines))
    return found


def draw(result: dict[str, Any], figure: Any) -> None:
    """Error over time, one picture per case, one line per way; legends under the pictures, where no point can be."""
    names = [case for case in CASES if any(r["case"] == case and r["error"] for r in result["rows"])]
    across = min(3, max(1, len(names)))
    down = -(-max(1, len(names)) // across)
    figure.set_size_inches(4.2 * across, 5.6 * down)
    panes = np.ravel(figure.subplots(down, across))
    for pane in panes[len(names) :]:
        pane.set_axis_off()
    for pane, case in zip(panes, names, strict=False):
        rows = [r for r in result["rows"] if r["case"] == case and r["error"]]
        for way in dict.fromkeys(r["way"] for r in rows):
            mine = sorted((r["seconds"], r["error"]) for r in rows if r["way"] == way)
            pane.loglog(*zip(*mine, strict=True), "o-" if len(mine) > 1 else "s", ms=4, label=way)
        for axis in (pane.xaxis, pane.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("{x:g}" if _narrow(axis) else "")
        pane.set_xlabel("seconds per simulated second", fontsize=8)
        pane.set_ylabel(UNITS[case], fontsize=8)
        tidy(pane, case)
        pane.tick_params(which="both", labelsize=7)
        pane.legend(fontsize=6, ncols=2, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14))


def _narrow(axis: Any) -> bool:
    """Whether powers of ten alone would leave an axis with less than two numbers."""
    low, high = axis.get_view_interval()
    return np.floor(np.log10(high)) - np.ceil(np.log10(low)) < 1
