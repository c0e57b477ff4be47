"""What the kernels for NVIDIA's GPUs compute, on machines without one: benchmarks/emulate.py carries them out thread by thread.

Steps of every method are those of a CPU but for rounding, also in the forms that only GPUs have: neighbours read as records,
lists collected in shared memory or torn into pieces, teams of threads.
"""

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpu_steps
from viscoil import native

HERE = Path(__file__).parent
BENCHMARKS = HERE.parent / "benchmarks"
SEVERAL = ("pbf_layers", "dcpbd_layers")  # scenes of validation/features.py with two materials: neighbours' masses are read
METHODS = {
    "pbf": ("", "small", "torn", "eight"), "dcpbd": ("", "small", "spilling"), "pvfs": ("", "small"),
    "iisph": ("", "small", "shape_matching"),
}  # fmt: skip

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or platform.machine() != "x86_64" or sys.platform != "linux",
    reason="the emulator switches threads as Linux on x86-64 has it, and needs a C compiler",
)


def module_of(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def emulated():
    return module_of("emulate").emulated


def run(emulated, folder, *asked, check=True, records=""):
    """A process of its own, on an emulated GPU with two multiprocessors."""
    environment = emulated(folder) | {"VISCOIL_CACHE": str(folder / "cache"), "PYTHONPATH": str(HERE)}
    environment.pop("VISCOIL_DEVICE", None)
    environment["VISCOIL_RECORDS"] = records
    done = subprocess.run([sys.executable, *asked], env=environment, capture_output=True, text=True, timeout=600)
    assert not check or done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def of_a_cpu(method, variant=""):
    with native.use(False):
        wanted = gpu_steps.after(method, "cpu", variant)
    assert np.abs(wanted["velocity"]).max() > 0.0025 * np.sqrt(9.81 * wanted["spacing"])
    return wanted


def compare(found, wanted):
    assert np.abs(found["position"] - wanted["position"]).max() < 1e-4 * wanted["spacing"]
    assert np.abs(found["velocity"] - wanted["velocity"]).max() < 2e-3 * np.abs(wanted["velocity"]).max()
    assert np.array_equal(found["bonds"], wanted["bonds"])


def test_neighbours_read_number_by_number_give_the_same(emulated, tmp_path):
    """What GPUs of other makers do."""
    run(emulated, tmp_path, str(HERE / "gpu_steps.py"), "cuda", str(tmp_path), "pbf:", records="none")
    compare(np.load(tmp_path / "pbf_.npz"), of_a_cpu("pbf"))


@pytest.mark.parametrize("method", METHODS)
def test_steps_are_those_of_a_cpu(emulated, method, tmp_path):
    """And a step is one graph, which reads whole records by one load."""
    asked = [f"{method}:{variant}" for variant in METHODS[method]]
    run(emulated, tmp_path, str(HERE / "gpu_steps.py"), "cuda", str(tmp_path), *asked)
    wanted = of_a_cpu(method)
    for variant in METHODS[method]:
        found = np.load(tmp_path / f"{method}_{variant}.npz")
        compare(found, of_a_cpu(method, variant) if variant in ("shape_matching", "small") else wanted)
        assert bool(found["torn"]) == (variant == "torn")
        assert len(np.unique(found["listed"])) == len(found["listed"])  # nobody twice
        assert (len(found["listed"]) > 0) == (method in ("pbf", "dcpbd"))
        if variant == "spilling":  # the same lists
            assert np.array_equal(found["position"], np.load(tmp_path / f"{method}_.npz")["position"])
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in sorted(tmp_path.glob("[0-9]*.ptx"))]
    first = next(text for text in texts if re.search(r"\.entry _?whole_step", text))
    assert first.count(".entry") > 10 and "ld.global.v4.b32" in first


@pytest.mark.parametrize("scene", SEVERAL)
def test_steps_of_several_materials_are_those_of_a_cpu(emulated, scene, tmp_path):
    """At a fifth of a millimetre."""
    run(emulated, tmp_path, str(HERE / "gpu_steps.py"), "cuda", str(tmp_path), f"{scene}:")
    compare(np.load(tmp_path / f"{scene}_.npz"), of_a_cpu(scene))


SQUARED = """
import sys

import gpu_steps

if sys.argv[1] == "faulty":  # as once: what is squared is 14/h⁵, and 0 times the overflow of those who fill up a fetch is NaN
    gpu_steps.with_fault(
        "viscoil.constraints.density", "squares += slope * slope * q2",
        "squares += spiky_gradient(d.dot(d), h) * spiky_gradient(d.dot(d), h) * d.dot(d) * (h * h * h * h) * (h * h * h * h)",
    )
gpu_steps.compile_in_a_hurry()
from viscoil.validation import scale
from viscoil.validation.case import Trial
from viscoil.validation.features import FEATURES

for check in scale.compared(Trial(True, "cuda"), FEATURES["pbf_drop"]):
    print("ok" if check.ok else "failed", check.measured, check.quantity)
"""


@pytest.mark.parametrize("density", ["right", "faulty"])
def test_numbers_beyond_floats_are_noticed(emulated, density, tmp_path):
    """Sizes agree on a GPU as well, and did not when density sums left the range of float32 at small spacings."""
    (tmp_path / "squared.py").write_text(SQUARED)
    done = run(emulated, tmp_path, str(tmp_path / "squared.py"), density)
    words = [line.split()[0] for line in done.stdout.splitlines()]
    assert words == ["ok", "ok"] if density == "right" else "failed" in words, done.stdout


LOST = """
import quadrants as qd
from viscoil import backend
from viscoil.particles import Floats, allocate_array

backend.start("cuda")

@qd.kernel
def fill(x: Floats, n: qd.i32):
    for i in range(n):
        x[i] = 1.0

x = allocate_array(qd.f32, 5)
fill(x, 5)
assert x.to_numpy().tolist() == [1.0] * 5
fill(x, 1100)  # arrays are pages
"""


def test_what_touches_memory_that_it_has_not_is_named(emulated, tmp_path):
    (tmp_path / "lost.py").write_text(LOST)
    done = run(emulated, tmp_path, str(tmp_path / "lost.py"), check=False)
    assert done.returncode == 86
    assert re.search(r"fill_\w+ touched 0x\w+, 4096 bytes from the begin of an array of 4096 bytes", done.stderr), done.stderr


def test_a_lost_sum_stays_lost(emulated, tmp_path):
    """On a GPU the smaller of NaN and 0 is 0: clamps would hide what went wrong."""
    run(emulated, tmp_path, str(HERE / "lost_sums.py"), "cuda")
