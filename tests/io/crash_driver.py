"""Runs execute() in child processes that are killed with SIGKILL, resumes them, and compares with a run left alone.

Usage: crash_driver.py FOLDER MODE SEED... where MODE is "call" (the child kills itself before or after a random one of
its file operations) or "time" (it is killed from outside after a random time). Prints one line per kill; exits 1 with a
message when a finished frame was touched or the result differs.
"""

import builtins
import hashlib
import io
import os
import random
import signal
import sys
import time
from pathlib import Path

from fake_simulation import SCENE, FakeSimulation

from viscoil.io.execute import execute
from viscoil.io.run import Run

FRAMES = 9
OPERATIONS = ("fsync", "replace", "unlink")


def fingerprints(folder: Path) -> dict[str, tuple[int, str]]:
    files = sorted((folder / "frames").glob("frame_*.vtkhdf"))
    return {f.name: (f.stat().st_mtime_ns, hashlib.sha256(f.read_bytes()).hexdigest()) for f in files}


def simulate(folder: Path, pause: float = 0.0) -> None:
    run = Run.open(folder) if Run.resumable(folder) else Run.create(folder, SCENE)
    execute(FakeSimulation(pause=pause, toml=SCENE), run, FRAMES)


def kill_self_at(count: int) -> None:
    """Arm a kill at the ``count``-th moment: before or after a file operation, or half way through a write."""
    done = 0

    def moment():
        nonlocal done
        done += 1
        if done == count:
            os.kill(os.getpid(), signal.SIGKILL)

    def armed(original):
        def operation(*arguments, **options):
            moment()
            result = original(*arguments, **options)
            moment()
            return result

        return operation

    class HalfWriter(io.FileIO):
        def write(self, data):
            data = memoryview(data)
            written = super().write(data[: len(data) // 2])
            moment()
            return written + super().write(data[len(data) // 2 :])

    real_open = builtins.open
    builtins.open = lambda file, mode="r", **more: (
        HalfWriter(file, mode.replace("b", "")) if mode in ("wb", "ab") else real_open(file, mode, **more)
    )
    for name in OPERATIONS:
        setattr(os, name, armed(getattr(os, name)))


def child(folder: Path, kill_at: int, pause: float) -> int:
    pid = os.fork()
    if pid == 0:
        if kill_at:
            kill_self_at(kill_at)
        simulate(folder, pause)
        os._exit(0)
    return pid


def crash_until_done(folder: Path, mode: str, seed: int) -> int:
    """Kill and resume until a child gets through; how often it was killed."""
    dice, kills, before = random.Random(seed), 0, {}
    while True:
        kill_at = dice.randrange(1, 90) if mode == "call" else 0
        pid = child(folder, kill_at, pause=0.0 if mode == "call" else 0.004)
        if mode == "time" and kills < 5:
            time.sleep(dice.uniform(0.005, 0.12))
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        after = fingerprints(folder)
        touched = [name for name, mark in before.items() if after.get(name) != mark]
        if touched:
            sys.exit(f"seed {seed}: finished frames were touched: {touched}")
        before = after
        if os.WIFSIGNALED(status):
            kills += 1
        elif os.WEXITSTATUS(status):
            sys.exit(f"seed {seed}: the resumed run failed after {kills} kills")
        else:
            return kills


def main(root: Path, mode: str, seeds: list[int]) -> None:
    simulate(root / "whole")
    expected = {name: digest for name, (_, digest) in fingerprints(root / "whole").items()}
    last_state = Run.open(root / "whole").checkpoint_path(FRAMES).read_bytes()
    for seed in seeds:
        folder = root / f"crashed_{mode}_{seed}"
        kills = crash_until_done(folder, mode, seed)
        run = Run.open(folder)
        found = {name: digest for name, (_, digest) in fingerprints(folder).items()}
        if found != expected or len(found) != FRAMES + 1:
            sys.exit(f"seed {seed}: frames differ from the run left alone")
        if run.checkpoint_path(FRAMES).read_bytes() != last_state:
            sys.exit(f"seed {seed}: the last checkpoint differs from the run left alone")
        if run.metrics()["frame"].tolist() != list(range(FRAMES + 1)):
            sys.exit(f"seed {seed}: metrics rows are {run.metrics()['frame'].tolist()}")
        if run.status != "finished" or list(folder.rglob("*.part")) or (folder / "lock").exists():
            sys.exit(f"seed {seed}: leftovers or wrong status {run.status}")
        print(f"{mode} seed {seed}: killed {kills} times")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], [int(seed) for seed in sys.argv[3:]])
