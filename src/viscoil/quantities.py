"""Quantities of particles as frames get them: what the world holds, and what is computed from it when it is asked for."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from viscoil.io.columns import von_mises
from viscoil.keys import did_you_mean, listed
from viscoil.particles import DERIVED, FIELDS
from viscoil.solvers import without_stress
from viscoil.turns import turn


def units(solver: Any) -> dict[str, str]:
    """Name -> unit of the quantities that frames can carry when this solver runs."""
    table = {**FIELDS, **(DERIVED if solver.has_stress else {})}
    return {name: row.unit for name, row in table.items() if row.exported}


def values(sim: Any, name: str) -> np.ndarray:
    """A quantity of all particles of a simulation, in array order."""
    if name in FIELDS:
        return sim.world.get(name)
    if name not in DERIVED:
        known = units(sim.solver)
        raise KeyError(f'there is no quantity "{name}".{did_you_mean(name, known)} Expected one of: {listed(known)}')
    if not sim.solver.has_stress:
        raise KeyError(f'"{name}": {without_stress(sim.scene.method)}')
    stress = sim.stress()
    return stress if name == "stress" else von_mises(stress)


def later(sim: Any) -> Callable[[str], np.ndarray]:
    """What gives a frame the quantities it was not made with, by particle id, as long as its simulation stands there."""
    me, moment = weakref.ref(sim), _moment(sim)  # a frame that is kept does not keep the simulation

    def more(name: str) -> np.ndarray:
        sim = me()
        with turn:  # another thread's step waits until all of it is there
            if sim is None or _moment(sim) != moment:
                why = "is no longer there" if sim is None else "has gone on"
                raise KeyError(
                    f"this frame was made without '{name}', and its simulation {why}: look at it before the next step, or "
                    f"ask for it in time: [output] fields = ['{name}'] in the scene, or sim.frame(['{name}'])"
                )
            return values(sim, name)[sim.world.fluid_order()]

    return more


def _moment(sim: Any) -> tuple[float, ...]:
    """Another one whenever particles have moved, come or gone."""
    return sim.world.steps, sim.world.time, sim.world.next_id, sim.world.count
