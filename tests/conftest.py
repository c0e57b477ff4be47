"""Tests run on the CPU and share one kernel cache, so that only the first run of all compiles."""

import getpass
import os
import tempfile
from pathlib import Path

os.environ.setdefault("VISCOIL_DEVICE", "cpu")
os.environ.setdefault("VISCOIL_CACHE", str(Path(tempfile.gettempdir()) / f"viscoil-test-kernels-{getpass.getuser()}"))
