"""Which build of Mitsuba draws: the fast one through LLVM where it works, otherwise the one that needs nothing.

Mitsuba's vectorised variant compiles with the system's libLLVM. Some versions of that library end the whole process in the
middle of a picture, with no error to catch; so every candidate has to draw a small picture in a process of its own before it
is trusted. What was found is kept per machine, and forgotten when Mitsuba or the libraries change.
"""

import ctypes.util
import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from viscoil.errors import SceneError, ViscoilError
from viscoil.extras import require
from viscoil.io.atomic import write_atomic
from viscoil.keys import did_you_mean, listed

VECTORISED, PLAIN = "llvm_ad_rgb", "scalar_rgb"
CHOICES = (VECTORISED, PLAIN, "cuda_ad_rgb")
BROKEN = (15, 16)  # these abort the process: "Cannot select: fminimum" on processors with AVX-512
OLDEST = 11  # nothing before this was ever tried
PATIENCE = 120.0  # seconds a candidate gets for its small picture
_PROBE = """
import mitsuba as mi, numpy as np
mi.set_variant({variant!r})
glass = {{"type": "sphere", "bsdf": {{"type": "dielectric"}}, "interior": {{"type": "homogeneous", "albedo": 0.2}}}}
film = {{"type": "hdrfilm", "width": 12, "height": 8, "pixel_format": "rgb"}}
camera = {{"type": "perspective", "fov": 60.0, "film": film,
          "to_world": mi.ScalarTransform4f().look_at(origin=[0, 1, 4], target=[0, 0, 0], up=[0, 1, 0])}}
floor = {{"type": "rectangle", "bsdf": {{"type": "principled"}}, "to_world": mi.ScalarTransform4f().scale(3)}}
scene = mi.load_dict({{"type": "scene", "integrator": {{"type": "volpathmis", "max_depth": 6}}, "light": {{"type": "constant"}},
                      "camera": camera, "glass": glass, "floor": floor}})
image = np.array(mi.render(scene, spp=4))
assert image.shape == (8, 12, 3) and np.isfinite(image).all() and 0.1 < image.mean() < 2, image.mean()
print("drawn")
"""


@dataclass(frozen=True)
class Variant:
    """A build of Mitsuba that drew a picture on this machine."""

    name: str
    library: str = ""  # libLLVM it compiles with; empty when it needs none
    reason: str = ""  # why it is not the fast one


_started: Variant | None = None


def start(wanted: str | None = None) -> tuple[Any, Variant]:
    """The module ``mitsuba``, ready to draw, and what it draws with. One variant per process: the first one stays."""
    global _started
    purpose = "to trace pictures (viscoil render --fast draws without it)"
    if _started is None:
        try:
            found = choose(wanted)
        except metadata.PackageNotFoundError:
            require("mitsuba", purpose)
            raise
        if found.library:
            os.environ["DRJIT_LIBLLVM_PATH"] = found.library  # before it is loaded
        mitsuba = require("mitsuba", purpose)
        mitsuba.set_variant(found.name)
        mitsuba.set_log_level(mitsuba.LogLevel.Error)
        _started = found
    elif wanted and wanted != _started.name:
        raise SceneError(f'variant: this process already draws with "{_started.name}"; start another one for "{wanted}"')
    return require("mitsuba", purpose), _started


def choose(wanted: str | None = None) -> Variant:
    """What to draw with: ``wanted``, VISCOIL_VARIANT, or the fastest that works; asked once per machine."""
    wanted = wanted or os.environ.get("VISCOIL_VARIANT") or None
    if wanted and wanted not in CHOICES:
        text = f'variant: there is no "{wanted}".{did_you_mean(wanted, CHOICES)} Expected one of: {listed(CHOICES)}'
        raise SceneError(text, key="variant")
    if wanted in (PLAIN, "cuda_ad_rgb"):
        return Variant(wanted)
    libraries = candidates()
    found = _remembered(libraries)
    if found is None:
        found = _find(libraries)
        _remember(libraries, found)
    if wanted == VECTORISED and found.name != VECTORISED:
        raise ViscoilError(f"variant: {VECTORISED} was asked for, but {found.reason}")
    return found


def candidates() -> list[str]:
    """LLVM libraries of this machine, newest first; only DRJIT_LIBLLVM_PATH when that is set."""
    told = os.environ.get("DRJIT_LIBLLVM_PATH")
    if told:
        return [told]
    found: dict[Path, int] = {}
    for pattern in _places():
        root = Path(pattern).anchor
        for path in sorted(Path(root).glob(str(Path(pattern).relative_to(root)))):
            version = _version(path)
            if version is not None and version >= OLDEST and version not in BROKEN:
                found.setdefault(path.resolve(), version)
    if not found:
        named = ctypes.util.find_library("LLVM")
        if named and _version(Path(named)) not in (None, *BROKEN):
            return [named]
    return [str(path) for path in sorted(found, key=lambda path: found[path], reverse=True)]


def _places() -> tuple[str, ...]:
    if platform.system() == "Darwin":
        return ("/opt/homebrew/opt/llvm*/lib/libLLVM*.dylib", "/usr/local/opt/llvm*/lib/libLLVM*.dylib")
    if platform.system() == "Windows":
        return ("C:/Program Files/LLVM/bin/LLVM-C.dll",)
    folders = ("lib/*-linux-gnu", "lib64", "lib", "lib/llvm-*/lib", "lib64/llvm*/lib", "local/lib")
    return tuple(f"/usr/{folder}/libLLVM*.so*" for folder in folders)


def _version(path: Path) -> int | None:
    """Major version in the name of a library: libLLVM-19.so, libLLVM.so.19.1, llvm-19/lib/libLLVM.so."""
    name = path.name
    match = re.search(r"LLVM[-.](?:so\.|dylib\.)?(\d+)", name) or re.search(r"llvm@?-?(\d+)", str(path.parent))
    if match:
        return int(match[1])
    return OLDEST if name in ("libLLVM.dylib", "LLVM-C.dll") else None  # no version anywhere: the picture will tell


def _find(libraries: list[str]) -> Variant:
    """The first library that draws; the plain variant when none does."""
    failures = []
    for library in libraries:
        failure = probe(VECTORISED, library)
        if not failure:
            return Variant(VECTORISED, library)
        failures.append(f"{library} {failure}")
    if failures:
        return Variant(PLAIN, reason=f"no LLVM library here draws a picture ({'; '.join(failures)})")
    return Variant(PLAIN, reason="no usable LLVM library was found (17 or newer; on Debian and Ubuntu: apt install libllvm19)")


def probe(variant: str, library: str = "") -> str:
    """Empty when ``variant`` draws a small picture in a process of its own, otherwise what happened there."""
    environment = {**os.environ, **({"DRJIT_LIBLLVM_PATH": library} if library else {})}
    command = [sys.executable, "-c", _PROBE.format(variant=variant)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return "took too long"
    if done.returncode == 0 and "drawn" in done.stdout:
        return ""
    said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    how = f"ended by signal {-done.returncode}" if done.returncode < 0 else f"ended with {done.returncode}"
    return f"{how}: {said[-1].strip()[:160]}" if said else how


# ---- what this machine is known to draw with -----------------------------------------------------------------------------


def _note() -> Path:
    base = os.environ.get("VISCOIL_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "viscoil") / "variant.json"


def _key(libraries: list[str]) -> str:
    """Changes with anything the answer depends on."""
    stamps = []
    for library in libraries:
        try:
            status = os.stat(library)
            stamps.append([library, status.st_size, int(status.st_mtime)])
        except OSError:
            stamps.append([library])
    versions = [metadata.version(name) for name in ("mitsuba", "drjit")]
    return json.dumps([platform.node(), platform.machine(), _processor(), versions, stamps])


def _processor() -> str:
    """Name of the processor: a folder shared between machines must not mix them up."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _remembered(libraries: list[str]) -> Variant | None:
    try:
        note = json.loads(_note().read_bytes())
        return Variant(**note["variant"]) if note["key"] == _key(libraries) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(libraries: list[str], found: Variant) -> None:
    """Keep the answer; a home folder that cannot be written only costs the next start a few seconds."""
    try:
        _note().parent.mkdir(parents=True, exist_ok=True)
        write_atomic(_note(), json.dumps({"key": _key(libraries), "variant": asdict(found)}, indent=1).encode())
    except (OSError, ViscoilError):
        pass
