"""Guessing what was meant: near spellings and words other programs use for the same thing."""

from collections.abc import Iterable
from difflib import get_close_matches

# What people type -> what it is called here. Only used for suggestions, never silently accepted.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "amplitude": ("jitter",),
    "centre": ("position",),
    "center": ("position",),
    "color": ("colour",),
    "dimensions": ("size",),
    "dt": ("step",),
    "duration": ("frames",),
    "emitters": ("emitter",),
    "eta": ("viscosity",),
    "extent": ("size",),
    "fluids": ("fluid",),
    "fps": ("frame_time",),
    "g": ("gravity", "modulus"),
    "kind": ("type", "method"),
    "lambda": ("relaxation_time",),
    "length": ("height", "size"),
    "location": ("position",),
    "materials": ("material",),
    "mu": ("viscosity", "friction"),
    "name": ("title", "method", "type"),
    "obstacle": ("solid",),
    "omega": ("angular_velocity",),
    "origin": ("position",),
    "particle_size": ("spacing",),
    "particle_spacing": ("spacing",),
    "path": ("file", "motion"),
    "r": ("radius",),
    "resolution": ("spacing",),
    "rho": ("density",),
    "rotate": ("rotation",),
    "shear_modulus": ("modulus",),
    "sigma": ("surface_tension",),
    "solids": ("solid",),
    "sinks": ("sink",),
    "solver": ("method",),
    "stiffness": ("modulus",),
    "substeps": ("steps_per_frame",),
    "t": ("time",),
    "tau": ("relaxation_time",),
    "time_step": ("step",),
    "timestep": ("step",),
    "translation": ("position",),
    "type": ("method",),
    "velocity": ("speed",),
    "speed": ("velocity",),
    "viscocity": ("viscosity",),
    "young": ("modulus",),
}


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known name that ``word`` was probably meant to be, or None."""
    names = [str(name) for name in known]
    lowered = {name.lower(): name for name in reversed(names)}
    tidy = word.strip().lower().replace("-", "_")
    spaced = tidy.replace("_", " ")
    for form in (tidy, spaced, tidy.replace("_", "-")):
        if form in lowered:
            return lowered[form]
    for other in SYNONYMS.get(tidy, ()):
        if other in names:
            return other
    for form in (tidy, spaced):
        found = get_close_matches(form, lowered, n=1, cutoff=0.6)
        if found:
            return lowered[found[0]]
    return None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``' Did you mean "box"?'``, or an empty string when nothing is near."""
    name = closest(word, known)
    return f' Did you mean "{name}"?' if name else ""


def listed(names: Iterable[str], limit: int = 40) -> str:
    """Names for a message: ``a, b, c`` (and how many were left out)."""
    names = [str(name) for name in names]
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest
