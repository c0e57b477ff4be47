"""What a measurement was made on: processor, graphics card, versions. Never a host's name."""

import datetime
import os
import platform
import subprocess
from pathlib import Path
from time import sleep
from typing import Any

from viscoil import backend, native


def processor() -> str:
    """Model name of the CPU."""
    file = Path("/proc/cpuinfo")
    if file.exists():
        fields = dict(line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
        names = {key.strip(): value.strip() for key, value in fields.items()}
        for key in ("model name", "Hardware", "CPU part"):
            if names.get(key):
                return names[key]
    if platform.system() == "Darwin":
        asked = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True)
        if asked.returncode == 0:
            return asked.stdout.strip()
    return platform.processor() or platform.machine()


def graphics() -> str:
    """Name of the GPU that runs the kernels, "" on a CPU."""
    running = backend.current()
    if not running.is_gpu:
        return ""
    if running.device == "cuda":
        query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        try:
            asked = subprocess.run(query, capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return running.device
        # Kernels run on the first card that is visible to this process.
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        names = asked.stdout.strip().splitlines()
        if names:
            return names[int(visible)] if visible.isdigit() and int(visible) < len(names) else names[0]
    return running.device


def free_graphics_memory() -> float:
    """Bytes free on the smallest NVIDIA card, 0 where kernels run elsewhere or nobody can tell."""
    if backend.current().device != "cuda":
        return 0.0
    query = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.split()
        return min(float(text) for text in answer) * 2**20
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0.0


def _times() -> tuple[int, int] | None:
    """(what all cores did, what they did of it but wait) since the start of the machine, where it tells."""
    try:
        fields = [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    return sum(fields), sum(fields) - fields[3] - fields[4]


def load() -> float:
    """Cores that others keep busy while this process waits a moment; else the load of the last minute, own included."""
    before = _times()
    if before is None:
        return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    sleep(LOOK)
    after = _times() or before
    return (os.cpu_count() or 1) * (after[1] - before[1]) / max(after[0] - before[0], 1)


def describe() -> dict[str, Any]:
    """Hardware, versions, date and the load before the measurement."""
    about = backend.describe()
    running = backend.current()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "device": running.device,
        "gpu": graphics(),
        "cpu": processor(),
        "cores": about["cores"],
        "threads": running.threads,
        "memory": about["memory"],
        "system": about["system"],
        "native": native.active(),
        "load": round(load(), 2),
        "versions": {name: about[name] for name in ("viscoil", "python", "quadrants", "numpy")},
    }


LOOK = 0.3  # seconds to look at what others do
BUSY = 0.5  # load per core from which other programs disturb a measurement


def notes(about: dict[str, Any]) -> list[str]:
    """What to say about other programs on the machine of :func:`describe`, if anything."""
    if about["load"] > BUSY * about["cores"]:
        return [
            f"The machine was busy (load {about['load']:g} on {about['cores']} cores before the start): times are too long, "
            "and only ratios of things measured in turns mean something."
        ]
    return []
