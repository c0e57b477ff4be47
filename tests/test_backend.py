"""Choosing a device and threads, and saying clearly what is missing."""

import os
import subprocess
import sys

import pytest

from kit import backend
from viscoil.errors import DeviceError


def test_runs_on_what_was_asked_for():
    running = backend.start("cpu")
    assert running.device == "cpu" and not running.is_gpu and running.threads >= 1
    assert backend.start() is running and backend.current() is running
    assert backend.probe()


def test_one_process_has_one_device():
    with pytest.raises(DeviceError, match=r"already runs on 'cpu'"):
        backend.start("vulkan")


def test_unknown_and_missing_devices(monkeypatch):
    with pytest.raises(DeviceError, match=r"no device called 'cdua'.*[Dd]id you mean .cuda"):
        backend.choose("cdua")
    monkeypatch.setattr(backend, "available", lambda name: name == "cpu")
    with pytest.raises(DeviceError, match=r"'cuda' was asked for.*available here: cpu"):
        backend.choose("cuda")
    monkeypatch.setenv("VISCOIL_DEVICE", "auto")
    assert backend.choose() == "cpu"
    monkeypatch.setattr(backend, "available", lambda name: name in ("cpu", "vulkan", "amdgpu"))
    assert backend.choose() == "amdgpu", "a GPU that works, and never Vulkan by itself"
    monkeypatch.setenv("VISCOIL_DEVICE", "cpu")
    assert backend.choose() == "cpu"
    assert backend.choose("vulkan") == "vulkan", "asking beats the environment"


def test_a_broken_driver_is_a_missing_one(monkeypatch):
    from quadrants.lang import misc

    def broken(_):
        raise RuntimeError("driver mismatch")

    monkeypatch.setattr(misc, "is_arch_supported", broken)
    assert not backend.available("cuda") and backend.available("cpu")


@pytest.mark.parametrize("value, expected", [("3", 3), ("0", None), ("", None), (" 2 ", 2)])
def test_threads_from_the_environment(monkeypatch, value, expected):
    monkeypatch.setenv("VISCOIL_THREADS", value)
    assert backend._thread_count(None) == (expected or 2 * backend.cores())
    assert backend._thread_count(7) == 7


@pytest.mark.parametrize("value", ["many", "-1", "1.5"])
def test_wrong_threads_in_the_environment(monkeypatch, value):
    monkeypatch.setenv("VISCOIL_THREADS", value)
    with pytest.raises(DeviceError, match="VISCOIL_THREADS"):
        backend._thread_count(None)


def test_wrong_threads():
    with pytest.raises(DeviceError, match="threads"):
        backend._thread_count(0)


def test_describe():
    facts = backend.describe()
    assert facts["device"] == "cpu" and facts["kernel ran"] is True
    assert {"viscoil", "python", "quadrants", "numpy", "cores", "threads", "memory"} <= set(facts)


def test_starting_is_silent():
    code = "from viscoil import backend; backend.start('cpu'); print('x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout == "x\n" and done.stderr == ""


def test_the_loop_counter_is_one_for_all():
    assert backend.loop_counter() is backend.loop_counter()


def test_a_script_may_have_kernels_of_its_own(tmp_path):
    """At its top level, where nobody is above it on the stack."""
    script = tmp_path / "mine.py"
    script.write_text(
        "import viscoil.backend\nimport quadrants as qd\nfrom viscoil.particles import Floats, allocate_array\n"
        "viscoil.backend.start('cpu')\n"
        "@qd.kernel\ndef count(x: Floats, n: qd.i32):\n    for i in range(n):\n        x[i] = 2.0 * i\n"
        "a = allocate_array(qd.f32, 5)\ncount(a, 5)\nprint(a.to_numpy().sum())\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("20.0")
