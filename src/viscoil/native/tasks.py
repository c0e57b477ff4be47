"""The structures of tasks.h for ctypes, field by field."""

from ctypes import Structure, c_float, c_int32, c_int64, c_void_p


def _pointers(*names: str) -> list[tuple[str, type]]:
    return [(name, c_void_p) for name in names]


class Near(Structure):
    """A neighbour list whose rows are contiguous."""

    _fields_ = [*_pointers("near_count", "near_index"), ("near_row", c_int64)]


class ListTask(Structure):
    """The neighbour list of sorted particles."""

    _fields_ = [
        *_pointers("order", "cell", "start", "x", "y", "z", "inverse_mass", "count", "index", "needed"),
        ("row", c_int64), ("width", c_int32), ("dims", c_int32 * 3), ("reach2", c_float),
    ]  # fmt: skip


class DensityTask(Structure):
    """One iteration of the density constraint: λ of all, then x ← x + Δx of all."""

    _anonymous_ = ("near",)
    _fields_ = [
        ("near", Near),
        *_pointers("x", "clear", "volume", "inverse_mass", "wall", "wall_gradient", "id", "error", "multiplier"),
        *_pointers("places", "with_multipliers"),
        ("support", c_float), ("softness", c_float), ("repulsion", c_float), ("reference", c_float),
        ("unilateral", c_int32), ("kernel", c_int32), ("power", c_int32), ("walled", c_int32),
        *_pointers("pressure"),
        ("share", c_float), ("warm", c_float), ("square", c_float), ("momentum", c_float), ("gain", c_float), ("done", c_int32),
    ]  # fmt: skip


class XsphTask(Structure):
    """XSPH, and the end of a step."""

    _anonymous_ = ("near",)
    _fields_ = [
        ("near", Near),
        *_pointers("x", "v", "volume", "inverse_mass", "velocity", "position", "places", "motions"),
        ("strength", c_float), ("support", c_float),
    ]  # fmt: skip


class ProjectTask(Structure):
    """One round of the velocity projection of DC-PBD."""

    _anonymous_ = ("near",)
    _fields_ = [
        ("near", Near),
        *_pointers("x", "free", "normal", "viscosity", "inverse_mass", "volume", "bulk", "held", "material"),
        *_pointers("u", "residual", "search", "image", "direction", "direction_image", "scalars", "progress"),
        *_pointers("before", "after", "partial"),
        ("dt", c_float), ("support", c_float), ("pairs", c_float), ("tolerance", c_float),
        ("iterations", c_int32), ("rounds", c_int32), ("even", c_int32), ("alpha", c_float), ("beta", c_float),
    ]  # fmt: skip


class PressureTask(Structure):
    """Densities, and pressures that leave no compression."""

    _anonymous_ = ("near",)
    _fields_ = [
        ("near", Near),
        *_pointers("x", "volume", "inverse_mass", "wall", "toward", "flux", "before", "velocity"),
        *_pointers("density", "gradient", "diagonal", "source", "pressure", "change", "acceleration", "excess"),
        *_pointers("slope_x", "slope_y", "slope_z", "places", "motions"),
        ("support", c_float), ("dt", c_float), ("relaxation", c_float), ("warm", c_float), ("brake", c_float),
        ("momentum", c_float), ("enclosed", c_int32), ("advected", c_int32), ("keeping", c_int32),
    ]  # fmt: skip


PASSES = {
    "list": ListTask, "density": DensityTask, "xsph": XsphTask, "weigh": PressureTask, "sources": PressureTask,
    "iterate": PressureTask, "accelerate": PressureTask, "project": ProjectTask,
}  # fmt: skip
FORMAT = 7  # as in tasks.h
