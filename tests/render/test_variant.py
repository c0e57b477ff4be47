"""Which Mitsuba draws: broken libraries are never tried, a library that fails is passed over, answers are kept."""

import json

import pytest

from viscoil.errors import SceneError, ViscoilError
from viscoil.render import variant


@pytest.fixture
def libraries(tmp_path, monkeypatch):
    """A machine with four LLVM libraries that nobody can load, and a cache of its own."""
    for version in (14, 15, 16, 19):
        (tmp_path / f"libLLVM-{version}.so.1").write_text("not a library")
    monkeypatch.setattr(variant, "_places", lambda: (f"{tmp_path}/libLLVM*.so*",))
    monkeypatch.setattr(variant.ctypes.util, "find_library", lambda name: None)
    monkeypatch.delenv("DRJIT_LIBLLVM_PATH", raising=False)
    monkeypatch.delenv("VISCOIL_VARIANT", raising=False)
    monkeypatch.setenv("VISCOIL_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_newest_first_and_never_those_that_abort(libraries):
    assert [path.rsplit("/", 1)[1] for path in variant.candidates()] == ["libLLVM-19.so.1", "libLLVM-14.so.1"]


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1", 15), ("/usr/lib/x86_64-linux-gnu/libLLVM.so.19.1", 19),
        ("/usr/lib/llvm-16/lib/libLLVM.so", 16), ("/opt/homebrew/opt/llvm@17/lib/libLLVM.dylib", 17),
        ("/usr/lib/libLLVMSomething.so", None),
    ],
)  # fmt: skip
def test_versions_are_read_from_names(path, version):
    assert variant._version(variant.Path(path)) == version


def test_told_library_is_the_only_candidate(libraries, monkeypatch):
    monkeypatch.setenv("DRJIT_LIBLLVM_PATH", "/somewhere/libLLVM.so")
    assert variant.candidates() == ["/somewhere/libLLVM.so"]


def test_first_library_that_draws_is_taken_and_remembered(libraries, monkeypatch):
    tried = []

    def probe(name, library=""):
        tried.append(library)
        return "" if library.endswith("libLLVM-14.so.1") else "ended by signal 6: LLVM ERROR"

    monkeypatch.setattr(variant, "probe", probe)
    found = variant.choose()
    assert found.name == "llvm_ad_rgb" and found.library.endswith("libLLVM-14.so.1")
    assert len(tried) == 2
    assert variant.choose() == found and len(tried) == 2, "asked once per machine"
    (libraries / "libLLVM-20.so.1").write_text("a newer one")
    variant.choose()
    assert len(tried) > 2, "asked again when the libraries change"


def test_damaged_note_is_asked_again(libraries, monkeypatch):
    monkeypatch.setattr(variant, "probe", lambda name, library="": "")
    variant.choose()
    note = libraries / "cache" / "variant.json"
    assert json.loads(note.read_text())["variant"]["name"] == "llvm_ad_rgb"
    note.write_text("{")
    assert variant.choose().name == "llvm_ad_rgb"


def test_without_a_library_that_draws_the_plain_variant_is_taken(libraries):
    found = variant.choose()  # real processes that really fail
    assert found.name == "scalar_rgb"
    assert "libLLVM-19.so.1" in found.reason and "libLLVM-14.so.1" in found.reason
    with pytest.raises(ViscoilError, match="llvm_ad_rgb was asked for, but no LLVM library"):
        variant.choose("llvm_ad_rgb")


def test_wishes(libraries, monkeypatch):
    assert variant.choose("scalar_rgb").name == "scalar_rgb"
    monkeypatch.setenv("VISCOIL_VARIANT", "scalar_rgb")
    assert variant.choose().name == "scalar_rgb"
    with pytest.raises(SceneError, match='Did you mean "scalar_rgb"'):
        variant.choose("scalar_rbg")


def test_plain_variant_draws_in_a_process_of_its_own():
    assert variant.probe("scalar_rgb") == ""
    assert "ended with 1" in variant.probe("no_such_variant")
