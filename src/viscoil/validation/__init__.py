"""Known solutions and published figures, measured: ``viscoil validate``.

One file per case; every module here that holds a ``CASE`` is in the table. See :mod:`viscoil.validation.case`.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from viscoil.validation.case import Case, Check, Mutation, Outcome, Result, Trial, results

__all__ = ["CASES", "Case", "Check", "Mutation", "Outcome", "Result", "Trial", "run"]


def _found() -> dict[str, Case]:
    modules = [import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__)]
    cases = [module.CASE for module in modules if hasattr(module, "CASE")]
    return {case.name: case for case in cases}


CASES: dict[str, Case] = _found()


def run(names: list[str], *, quick: bool = False, device: str = "auto", plots: Path | None = None) -> list[Result]:
    """Runs the named cases and returns a row per number; ``plots``: folder for one picture per case."""
    rows: list[Result] = []
    for name in names:
        case = CASES[name]
        outcome = case.run(quick, device)
        rows += results(case, outcome, str(draw(case, outcome, plots)) if plots else "")
    return rows


def draw(case: Case, outcome: Outcome, folder: Path) -> Path:
    """The picture of an outcome."""
    from viscoil.validation.drawing import save, sheet

    figure = sheet(case.measures)
    case.plot(outcome, figure)
    return save(figure, Path(folder) / f"{case.name}.png")
