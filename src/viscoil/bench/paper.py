"""The table of Macklin & Müller 2013 (section 7, GTX 680) and the same sizes measured here."""

from dataclasses import dataclass

HARDWARE = "GTX 680 (2013)"
CATEGORIES = ("integrate", "hash grid", "neighbours", "constraint solve", "velocity update")
VORTICITY = 0.01  # [m/s]: the paper's velocity update includes confinement, so ours does too


@dataclass(frozen=True)
class PaperScene:
    """One row of the paper's tables."""

    name: str
    particles: int
    iterations: int
    step_ms: float
    split: tuple[int, ...] | None  # percent, in the order of CATEGORIES, where published


SCENES = (
    PaperScene("Armadillo Splash", 128_000, 3, 4.2, (1, 8, 28, 38, 25)),
    PaperScene("Dam Break", 100_000, 3, 4.3, (1, 6, 28, 51, 14)),
    PaperScene("Bunny Drop", 80_000, 10, 7.8, None),
)


def split(stages_ms: dict[str, float]) -> dict[str, float]:
    """Percent of a step in the paper's categories, from our stages."""
    ours = {
        "integrate": stages_ms.get("integrate", 0.0),
        "hash grid": stages_ms["sort"],
        "neighbours": stages_ms["list"],
        "constraint solve": stages_ms["solve"],
        "velocity update": stages_ms["velocity"],
    }
    whole = sum(ours.values())
    return {name: 100 * value / whole for name, value in ours.items()}
