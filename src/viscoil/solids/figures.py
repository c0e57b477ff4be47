"""Figures built from distance functions: the gummy bear that stands in for scanned models."""

import math

# Parts of a bear of height 1, feet at y = -0.5, facing +z: (kind, lengths, centre, rotation in degrees).
# Measured off nothing but taste: a sitting-upright sweet with stub arms, round ears and a flat belly.
_BEAR = (
    ("capsule", (0.200, 0.070), (0.000, -0.080, 0.000), (0, 0, 0)),  # trunk
    ("sphere", (0.175,), (0.000, -0.120, 0.045), (0, 0, 0)),  # belly
    ("sphere", (0.190,), (0.000, 0.240, 0.010), (0, 0, 0)),  # head
    ("sphere", (0.085,), (0.000, 0.205, 0.160), (0, 0, 0)),  # muzzle
    ("sphere", (0.078,), (-0.135, 0.420, 0.000), (0, 0, 0)),  # ears
    ("sphere", (0.078,), (0.135, 0.420, 0.000), (0, 0, 0)),
    ("capsule", (0.072, 0.060), (-0.200, 0.000, 0.110), (60, 0, -20)),  # arms, reaching forward
    ("capsule", (0.072, 0.060), (0.200, 0.000, 0.110), (60, 0, 20)),
    ("capsule", (0.095, 0.060), (-0.130, -0.390, 0.080), (65, 0, 0)),  # legs, stretched out
    ("capsule", (0.095, 0.060), (0.130, -0.390, 0.080), (65, 0, 0)),
)
_BLEND = 0.06  # smooth joints, as a share of the height


def bear_parts(height: float) -> tuple[list[tuple[str, tuple, tuple, tuple]], float]:
    """Parts of a gummy bear ``height`` metres tall, centred on the origin, and the blend length [m] of their union."""
    parts = []
    for kind, lengths, centre, rotation in _BEAR:
        parts.append((kind, tuple(height * a for a in lengths), tuple(height * a for a in centre), rotation))
    return parts, height * _BLEND


def bear_radius(height: float) -> float:
    """Radius [m] of a sphere about the centre that holds the bear."""
    reach = max(math.hypot(*centre) + sum(lengths) for _, lengths, centre, _ in _BEAR)
    return height * (reach + _BLEND)
