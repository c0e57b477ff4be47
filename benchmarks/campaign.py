"""What is to be measured on a GPU that is lent by the minute: what is missed most comes first, each part has its own limit.

    # here, without a GPU, for Python 3.12 there
    pip download --python-version 3.12 --only-binary=:all: -d wheels quadrants pydantic cyclopts rich h5py
    VISCOIL_THREADS=32 VISCOIL_CACHE=build/kernels python3.12 benchmarks/campaign.py rehearse
    # over there
    pip install --no-index --no-deps --target site wheels/*.whl && export PYTHONPATH=site:src
    VISCOIL_THREADS=32 VISCOIL_CACHE=build/kernels python benchmarks/campaign.py warm --seconds 40
    VISCOIL_THREADS=32 VISCOIL_CACHE=build/kernels python benchmarks/campaign.py measure results --seconds 540

``rehearse`` compiles all kernels ahead (see rehearse.py for what has to be equal on both machines). What is left to the driver
over there, machine code, takes some ten seconds per part, and a fresh machine another twenty for the first: ``warm`` starts all
parts at once, on as many cores as there are, and stops them; the driver remembers. ``measure`` writes
FOLDER/PART.json and PART.log, and FOLDER.tar with all of them after every part, so that whoever is stopped keeps what was done;
``--parts`` names some of them, ``list`` shows all. Then, with the files at home:

    python benchmarks/campaign.py compare FOLDER        the variants of each load side by side
    python benchmarks/merge.py benchmarks/results/h200/papers.json FOLDER/small.json …; python benchmarks/tables.py
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).resolve().parent
COUNTERS = (  # of every kernel: time, registers, how busy warps, caches and memory are
    "gpu__time_duration.sum,launch__registers_per_thread,sm__warps_active.avg.pct_of_peak_sustained_active,"
    "l1tex__throughput.avg.pct_of_peak_sustained_active,lts__throughput.avg.pct_of_peak_sustained_elapsed,"
    "dram__throughput.avg.pct_of_peak_sustained_elapsed,sm__inst_issued.avg.pct_of_peak_sustained_active"
)
PROFILER = (  # caches stay as they are in a run: small loads live in them
    *("ncu", "--clock-control", "none", "--cache-control", "none", "-k", "regex:whole_step"),
    *("--print-summary", "per-kernel", "--metrics", COUNTERS),
)
CHECKER = ("compute-sanitizer", "--tool", "racecheck")
MULTIPROCESSORS = "132"  # of an H200: loops are compiled for their number


@dataclass(frozen=True)
class Part:
    """One command line of viscoil, or of plain_steps.py under a tool."""

    name: str
    command: tuple[str, ...]
    seconds: float  # after which it is stopped
    settings: dict[str, str] = field(default_factory=dict)
    tool: tuple[str, ...] = ()

    @property
    def measures(self) -> bool:
        """Whether it writes rows."""
        return self.command[0] == "bench"

    @property
    def on_gpu(self) -> bool:
        """Whether it needs kernels of a GPU."""
        return "cpu" not in self.command


def _papers(name: str, loads: str, seconds: float, **settings: str) -> Part:
    return Part(name, ("bench", "papers", "--device", "cuda", "--loads", loads), seconds, settings)


def _scaling(name: str, seconds: float, *more: str) -> Part:
    return Part(name, ("bench", "scaling", *more), seconds)


RIGHT = ("validate", "free_fall", "invariants", "column", "--quick", "--device", "cuda")
FEW = "cube_interactive,cube_honey,cube_waffle,tank_armadillo_splash,tank_dam_break,tank_bunny_drop"
SCENES = "ice_cream,honey,coiling,waffle,hand_and_bowl,blocks,bear_splash,dam_break,bear_drop,bear_bath"
PARTS = (
    Part("right", RIGHT, 60),
    Part("scale", ("validate", "scale", "--device", "cuda"), 240),
    Part("parity", ("validate", "parity", "--device", "cuda"), 400),
    Part("paper_scenes", ("validate", "paper_scenes", "--device", "cuda"), 500),
    _papers("scenes", SCENES, 240),
    _papers("small", FEW, 90),
    _papers("pbf_million", "tank_million", 60),
    _papers("million", "cube_million", 60),
    _papers("pvfs_iisph", "block_1k,block_20k,block_20k_liquid,block_million,ball_million", 120),
    _papers("bears", "cube_bears", 120),
    Part("profile_honey", ("plain_steps", "honey"), 120, {}, PROFILER),
    _scaling("largest", 240, "--device", "cuda", "--solver", "dcpbd", "--particles", "none", "--largest"),
    _scaling("threads", 240, "--device", "cpu", "--particles", "none", "--thread-counts", "1,2,4,8,16,32"),
    _papers("cake", "cake", 300),
    _papers("gummy_bears", "gummy_bears", 300),
    _scaling("sizes", 240, "--device", "cuda"),
    Part("profile_pbf", ("plain_steps", "pbf", "1000000"), 120, {}, PROFILER),
    Part("races", ("plain_steps", "dcpbd", "20000"), 200, {}, CHECKER),
)


def chosen(names: str) -> list[Part]:
    """The parts of that name, in the order of PARTS; all of them for none."""
    known = {part.name: part for part in PARTS}
    wanted = [name for name in names.split(",") if name]
    if unknown := [name for name in wanted if name not in known]:
        sys.exit(f"there is no part called {', '.join(unknown)}; expected some of {', '.join(known)}")
    return [part for part in PARTS if not wanted or part.name in wanted]


def command_of(part: Part, folder: Path) -> list[str]:
    """What is run to measure a part into ``folder``."""
    if part.command[0] == "plain_steps":
        return [*part.tool, sys.executable, str(HERE / "plain_steps.py"), *part.command[1:]]
    more = ["--json", str(folder / f"{part.name}.json")] if part.measures else []
    return [sys.executable, "-m", "viscoil", *part.command, *more]


def carry_out(command: list[str], settings: dict[str, str], seconds: float | None, log: Path) -> int | None:
    """Exit code of a command that writes to ``log``; None: its time was over, and all that it started is gone."""
    with log.open("w") as file:
        process = subprocess.Popen(
            command, env=os.environ | settings, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def pack(folder: Path) -> None:
    """All files of ``folder`` as one beside it: there or as it was."""
    fresh = folder.with_suffix(".part")
    with tarfile.open(fresh, "w:gz") as archive:
        archive.add(folder, folder.name)
    os.replace(fresh, folder.with_suffix(".tar"))


def measure(parts: list[Part], folder: Path, seconds: float) -> None:
    """One part after the other while there is time; who fails or takes too long is left behind."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = perf_counter()
    for part in parts:
        left, start = seconds - (perf_counter() - begin), perf_counter()
        if left < 10:
            print(f"{part.name:20s} no time left", flush=True)
            continue
        log = folder / f"{part.name}.log"
        code = carry_out(command_of(part, folder), part.settings, min(part.seconds, left), log)
        said = "out of time" if code is None else f"exit code {code}"
        print(f"{part.name:20s} {said}, {perf_counter() - start:.0f} s", flush=True)
        if code:
            print(log.read_text(errors="replace")[-600:], flush=True)
        pack(folder)


def warm(parts: list[Part], folder: Path, seconds: float) -> None:
    """All parts that use a GPU at once, for so long; what they find is thrown away."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(max(len(parts), 1)) as pool:
        for part in parts:
            if part.on_gpu and not part.tool:
                pool.submit(carry_out, command_of(part, folder), part.settings, seconds, folder / f"{part.name}.log")


def rehearsal_of(part: Part) -> list[str]:
    """What is run to compile a part's kernels: nothing is computed, but where the next kernel depends on it."""
    if not part.on_gpu:  # threads that take turns on few cores, and fewer particles
        return [sys.executable, "-m", "viscoil", *part.command, "--thread-particles", "20000"]
    if part.command[0] == "validate":
        return [sys.executable, str(HERE / "emulate.py"), "-m", "viscoil", *part.command]
    return [sys.executable, str(HERE / "rehearse.py"), *part.command]


def rehearse(parts: list[Part], folder: Path) -> None:
    """Compiles what the parts need."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        start, log = perf_counter(), folder / f"rehearsal_{part.name}.log"
        code = carry_out(rehearsal_of(part), {"MULTIPROCESSORS": MULTIPROCESSORS} | part.settings, None, log)
        last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        print(f"{part.name:20s} exit code {code}, {perf_counter() - start:.0f} s: {last}", flush=True)


def rows(folder: Path) -> Iterator[tuple[str, dict]]:
    """(part, row) of all that was measured."""
    for part in PARTS:
        file = folder / f"{part.name}.json"
        if file.exists():
            yield from ((part.name, row) for row in json.loads(file.read_text())["rows"])


def compare(folder: Path) -> str:
    """A line per load: what every part says of it."""
    found: dict[str, dict[str, str]] = {}
    for name, row in rows(folder):
        if "value" in row:
            took = row["value"] or row["run"]  # scenes are measured in a run only
            value = f"{took / 1e9:.3g} G/s" if row["unit"] == "rate" else f"{1e3 * took:.3g} ms"
            asked = row["asked"] and (f"{row['asked'] / 1e9:.3g}" if row["unit"] == "rate" else f"{1e3 * row['asked']:.3g}")
            load = f"{row['name']}, {row['solver']}" + (f" ({asked} asked)" if asked else "")
            found.setdefault(load, {})[name] = value
    return "\n".join(f"{load:45s} " + "   ".join(f"{k} {v}" for k, v in values.items()) for load, values in found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("list", "rehearse", "warm", "measure", "compare"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/campaign"))
    parser.add_argument("--parts", default="", help="names, separated by commas")
    parser.add_argument("--seconds", type=float, default=540.0, help="after which nothing more is measured")
    asked = parser.parse_args()
    parts = chosen(asked.parts)
    if asked.what == "list":
        for part in parts:
            settings = " ".join(f"{key}={value}" for key, value in part.settings.items())
            print(f"{part.name:20s} at most {part.seconds:3.0f} s   {settings} {' '.join(part.tool[:1] + part.command)}")
    elif asked.what == "rehearse":
        rehearse(parts, asked.folder)
    elif asked.what == "warm":
        with tempfile.TemporaryDirectory() as folder:
            warm(parts, Path(folder), asked.seconds)
    elif asked.what == "measure":
        measure(parts, asked.folder, asked.seconds)
    else:
        print(compare(asked.folder))


if __name__ == "__main__":
    main()
