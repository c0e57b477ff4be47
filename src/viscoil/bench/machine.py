"""What a measurement was made on: processor, graphics card, versions. Never a host's name."""

import datetime
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from viscoil import backend


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


def load() -> float:
    """Programs that wanted a core during the last minute, on average; 0 where nobody counts."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


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
        "load": round(load(), 2),
        "versions": {name: about[name] for name in ("viscoil", "python", "quadrants", "numpy")},
    }
