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


bench_studio = App(
    name="studio",
    help_epilogue="Examples:\n  viscoil bench studio\n  viscoil bench studio --particles 50000 --seconds 5\n"
    "  viscoil bench studio --minutes 10 --json studio.json",
    result_action="return_value",
)


@bench_studio.default
def measure(*, particles: str = "", seconds: float = 10.0, minutes: float = 0.0, json: Path | None = None) -> int:
    """Measure how fast the studio reaches a browser (headless Chromium), and its memory over time.

    Parameters
    ----------
    particles
        Particle counts, separated by commas, each as points and as surface; left out: 15000 and 100000 points and the
        surface of 100000.
    seconds
        How long each is counted.
    minutes
        Then watch the memory for so long.
    json
        File for the results.
    """
    import json as encoder

    from viscoil.errors import SceneError

    try:
        counts = [int(text.replace("_", "")) for text in particles.split(",")] if particles else []
    except ValueError:
        counts = [0]
    if any(count < 1 for count in counts):
        raise SceneError(f'--particles: expected counts separated by commas, e.g. 15000,100000; got "{particles}"')
    from viscoil.bench import studio as bench
    from viscoil.extras import require

    require("viser", "for the studio")
    cases = [(show_, count) for count in counts for show_ in ("points", "surface")] or None
    result = bench.main(cases, seconds, minutes, say=lambda text: print(text, file=sys.stderr))
    rows = [
        (r["show"], f"{r['particles']:,}", f"{r['drawn']:.1f}", f"{r['received']:.1f}", f"{r['megabytes']:.2f}",
         "" if r["target"] is None else f"{r['target']:g}")
        for r in result["rates"]
    ]  # fmt: skip
    show.table(("shown", "particles", "drawn/s", "received/s", "MB each", "wanted/s"), rows)
    memory = result["memory"]
    if memory:
        print()
        for who in ("studio", "browser"):
            first, last, slope = memory[f"{who}_first"], memory[f"{who}_last"], memory[f"{who}_per_minute"]
            print(f"{who}: {first:.1f} MB -> {last:.1f} MB in {memory['minutes']:g} min, {slope:+.2f} MB/min at the end")
    if json is not None:
        json.write_text(encoder.dumps(result, indent=2))
    return 0
