"""The library is built by whoever has a compiler, and everything works for those who have none."""

import os
import subprocess
import sys

import pytest

from viscoil.native import build

CODE = "from viscoil import backend, native; backend.start('cpu'); print(native.active(), native.describe())"


def said(value):
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env={**os.environ, "VISCOIL_NATIVE": value}
    )
    return done.stdout + done.stderr


def test_the_environment_switches():
    assert said("1").startswith("True AVX")
    assert said("0").startswith("False not in use: switched off")
    assert "VISCOIL_NATIVE: expected 0" in said("yes")


def test_builds_from_the_sources(tmp_path):
    library, tool = build.build(tmp_path)
    assert library == tmp_path / build.LIBRARY and library.stat().st_size > 10_000
    assert tool == build.compiler()
    assert [file.name for file in tmp_path.iterdir()] == [build.LIBRARY]


def test_no_compiler_is_an_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert build.build(tmp_path) == (None, "no C++ compiler was found (CXX, c++, g++, clang++)")


def test_a_compiler_that_fails_is_an_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "false")
    library, why = build.build(tmp_path)
    assert library is None and "could not compile" in why
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("compiler", "tag"), [("", "py3-none-"), ("no-such-compiler", "py3-none-any")])
def test_wheels(tmp_path, monkeypatch, compiler, tag):
    """A wheel with the library where there is a compiler, a plain one where there is none."""
    from zipfile import ZipFile

    root = build.SOURCES.parents[2]
    if not (root / "pyproject.toml").exists():
        pytest.skip("tests run from an installed package, not from its sources")
    environment = {**os.environ, **({"CXX": compiler} if compiler else {})}
    environment.pop("VISCOIL_NATIVE", None)
    code = f"import os; os.chdir({str(root)!r}); from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    wheel = next(tmp_path.glob("*.whl"))
    assert tag in wheel.name
    names = ZipFile(wheel).namelist()
    assert "viscoil/native/passes.cpp" in names
    assert (f"viscoil/native/{build.LIBRARY}" in names) == (not compiler)
