"""`viscoil studio`: its options and what it prints."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from viscoil.cli import show

studio = App(
    name="studio",
    help_epilogue="Examples:\n  viscoil studio\n  viscoil studio dam_break\n  viscoil studio my_scene.toml --port 9000\n"
    "  viscoil studio dam_break --no-browser --device cuda\n"
    "  ssh -L 8080:localhost:8080 workstation viscoil studio   (then open http://localhost:8080 here)",
    result_action="return_value",
)


@studio.default
def run(
    scene: str | None = None, /, *, port: int | None = None, host: str = "127.0.0.1", device: str = "auto",
    threads: int | None = None, output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("studio"),
    browser: bool = True,
) -> int:  # fmt: skip
    """Simulate live in the browser: play, pull sliders, drag solids, record.

    Parameters
    ----------
    scene
        Shipped name or .toml file; can also be chosen in the page.
    port
        Port to listen on; by default the first free one from 8080 on.
    host
        Address to listen on. 0.0.0.0 lets everybody on the network see and control the studio.
    device
        auto, cpu, cuda, amdgpu, metal or vulkan.
    threads
        CPU threads; twice the cores by default.
    output
        Folder for pictures, scenes, checkpoints and recordings.
    browser
        Open the page in the default browser.
    """
    from viscoil.cli.running import check_machine
    from viscoil.extras import require
    from viscoil.scene.load import find

    require("viser", "for the studio")
    machine = _Machine(device, threads)
    check_machine(machine)
    if scene is not None:
        find(scene)  # a name that does not exist is said here, not only in the page
    from viscoil.studio.app import DEFAULT_PORT, Studio
    from viscoil.studio.server import LOCAL

    if host not in (LOCAL, "localhost", "::1"):
        print(
            f"warning: listening on {host}. Anyone who can reach this computer over the network can watch, control the "
            "simulation and load scene files from this computer. There is no password.",
            file=sys.stderr,
        )
    live = Studio(
        scene, host=host, port=DEFAULT_PORT if port is None else port, exact_port=port not in (None, 0), device=device,
        threads=threads, output=output,
    )  # fmt: skip
    with live:
        show.pairs([("studio", live.url), ("saves to", output)])
        print("Ctrl-C ends it.", flush=True)
        if browser:
            import webbrowser

            webbrowser.open(live.url)
        _wait()
    return 0


class _Machine:
    """What :func:`check_machine` looks at."""

    def __init__(self, device: str, threads: int | None):
        self.device, self.threads = device, threads


def _wait() -> Any:
    """Until Ctrl-C or SIGTERM."""
    import signal
    import threading

    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    while not done.wait(0.5):  # short waits: Windows delivers Ctrl-C only in between
        pass
