"""Compiled kernels: found again by the next process, kept by one that is killed, shown and removed."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import quadrants as qd

from viscoil import backend, cache, compiler
from viscoil.cli import main
from viscoil.particles import allocate_array, copy, mat3, vec3

SCENES = ("dam_break", "coiling", "plastic_blocks", "merging_balls")  # one of each method


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    command, everything = [sys.executable, "-c", code], {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=everything)


def test_a_second_process_compiles_nothing(tmp_path):
    """In a cache of its own: of two processes that save at the same moment the compiler may keep one's kernels only."""
    for attempt in (1, 2):
        command = [sys.executable, "-m", "viscoil", "cache", "--warm", *SCENES]
        known = os.environ | {"VISCOIL_CACHE": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=known)
        assert done.returncode == 0, done.stderr
        found = dict(re.findall(r"^(\w+): (\d+) kernels compiled", done.stdout, re.MULTILINE))
        assert set(found) == set(SCENES)
        if attempt == 2:
            assert set(found.values()) == {"0"}, done.stdout


def test_there_is_room_for_the_kernels_of_all_solvers():
    """The compiler's own limit, 100 MB, is less than all variants take: it would throw away what the next run needs."""
    backend.start("cpu")
    assert qd.lang.impl.current_cfg().offline_cache_max_size_of_files >= 1 << 30


COMPILE = """
import os, signal, quadrants as qd
from viscoil import backend, compiler
from viscoil.particles import allocate_array, copy
backend.start("cpu")
a, b = allocate_array(qd.f32, 4), allocate_array(qd.f32, 4)
copy(a, b, 0, 4)
print(compiler.counts.read, compiler.counts.loaded, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux only")
def test_a_process_that_is_killed_has_not_compiled_in_vain(tmp_path):
    keep = "backend.keep_kernels(wait=True); copy(b, a, 0, 4); os.kill(os.getpid(), signal.SIGKILL)"
    killed = python(COMPILE + keep, VISCOIL_CACHE=str(tmp_path))
    assert killed.returncode == -9 and killed.stdout.split() == ["1", "0"], killed.stderr
    assert python(COMPILE, VISCOIL_CACHE=str(tmp_path)).stdout.split() == ["0", "1"]


def test_new_arrays_are_zero_and_cost_no_kernel():
    backend.start()
    for kind, tail in ((qd.f32, ()), (qd.i32, ()), (vec3, (3,)), (mat3, (3, 3))):
        for _ in range(3):  # memory that was somebody's before
            array = allocate_array(kind, 5000)
            array.from_numpy(np.full((5000, *tail), 7, np.int32 if kind is qd.i32 else np.float32))
            del array
        array = allocate_array(kind, 5000)
        assert not array.to_numpy().any()
    from quadrants import _kernels

    before = len(_kernels.fill_ndarray_matrix._primal.materialized_kernels)
    for _ in range(5):
        allocate_array(vec3, 10)
    assert len(_kernels.fill_ndarray_matrix._primal.materialized_kernels) == before


def test_a_kernel_is_counted_once_per_variant():
    backend.start()
    a, b = allocate_array(mat3, 4), allocate_array(mat3, 4)
    copy(a, b, 0, 4)
    before = compiler.counts.read + compiler.counts.loaded
    for count in range(3):
        copy(a, b, 0, count)
    assert compiler.counts.read + compiler.counts.loaded == before


def test_kernels_in_classes_are_still_recognised():
    @qd.data_oriented
    class Holder:
        @qd.kernel
        def twice(self, x: qd.i32) -> qd.i32:
            return 2 * x

    backend.start()
    assert Holder().twice(21) == 42


def test_cache_is_shown_and_cleared(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("VISCOIL_CACHE", str(tmp_path))
    for version in (cache.digest(), "0123456789abcdef"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "kernel.qdc").write_bytes(bytes(1000))
    (tmp_path / "meshes").mkdir()
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert str(tmp_path / cache.digest()) in shown and "kernels         1\n" in shown and "1, 1 kB" in shown
    assert main(["cache", "--clear"]) == 0
    assert "removed 2 kB" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["meshes"], "only compiled kernels go"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["dam_break"], "expected: viscoil cache --warm dam_break"),
        (["--warm", "peer_pbf"], "no shipped scene uses peer_pbf"),
        (["--warm", "dam_brake"], "dam_break"),
    ],
)
def test_wrong_names_are_answered(arguments, text, capsys):
    assert main(["cache", *arguments]) == 2
    assert text in capsys.readouterr().err
