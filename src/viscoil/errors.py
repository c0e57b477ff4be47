"""Every error a user can meet. The message is complete: what is wrong, where, what was expected, what to do.

The command line prints the message alone (no traceback) and exits with the class's ``exit_code``.
"""


class ViscoilError(Exception):
    """Base of all errors raised on purpose; its text is meant for people."""

    exit_code = 1


class SceneError(ViscoilError):
    """Wrong input: a scene file, a scene built in Python, ``--set``, a name that does not exist."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        key: str | None = None,
        expected: str | None = None,
        suggestion: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file  # scene file the input came from
        self.key = key  # dotted path of the (first) wrong key, e.g. "fluid.0.shape.size"
        self.expected = expected  # what would have been right, in words
        self.suggestion = suggestion  # the name that was probably meant


class RunFolderError(ViscoilError):
    """A run folder, checkpoint or frame is missing, damaged or belongs to something else."""

    exit_code = 2


class DeviceError(ViscoilError):
    """The device asked for does not exist here or cannot run the kernels."""

    exit_code = 2


class SimulationFailed(ViscoilError):
    """The simulation itself went wrong (not finite, exploded); frames finished so far are kept."""

    exit_code = 1

    def __init__(
        self, message: str, *, time: float | None = None, particle: int | None = None, cause: str | None = None
    ) -> None:
        super().__init__(message)
        self.time = time  # simulated time [s]
        self.particle = particle  # permanent id of the first particle concerned
        self.cause = cause  # the likely reason, in words


class SurfaceFailed(ViscoilError):
    """No surface could be made of a frame."""

    exit_code = 1


def install_command(extra: str) -> str:
    """How to get an extra of pyproject.toml: from a clone, as viscoil itself is installed."""
    return f'pip install ".[{extra}]" (in the folder viscoil was cloned into)'


class MissingExtra(ViscoilError):
    """Something optional was asked for and its package is not installed."""

    exit_code = 2

    def __init__(self, package: str, extra: str, purpose: str, reason: str = "") -> None:
        why = f"{package} cannot be loaded ({' '.join(reason.split())})" if reason else f"{package} is not installed"
        how = f"Install it with: {install_command(extra)}" if extra else f"Install it with: pip install {package}-core"
        super().__init__(f"{why}; it is needed {purpose}. {how}")
        self.package = package
        self.extra = extra
