"""Passes written by hand are tested where they can be built; a machine without a compiler has none to test."""

import os

import pytest

from viscoil import backend, native
from viscoil.native import build


@pytest.fixture(scope="session", autouse=True)
def built():
    """The library, built first where an installation has not done so, or has built it from other sources."""
    backend.start("cpu")
    if not native.active() and os.environ.get("VISCOIL_NATIVE") != "0":
        library, why = build.build(build.SOURCES)
        if library is None:
            assert build.compiler() is None or "written for" in why, why
            pytest.skip(why)
        native._load.cache_clear()
        assert native.active() or "neither AVX" in native.describe(), native.describe()
    if not native.active():
        pytest.skip(native.describe())


@pytest.fixture(params=["as wide as possible", "AVX2"])
def instructions(request):
    """Both sets of instructions, where the processor has them."""
    library = native._load()[0]
    library.viscoil_restrict(request.param == "AVX2")
    yield request.param
    library.viscoil_restrict(0)
