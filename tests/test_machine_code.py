"""benchmarks/machine_code.py counts what the inner loops of a disassembly hold; host_time.py counts what the host does for a
GPU. What a GPU computes: test_gpu_numbers.py."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "benchmarks" / "machine_code.py"
ASSEMBLY = """
//--------------------- .text.first --------------------------
.text.first:
        /*0000*/                   LDG.E.64 R2, desc[UR6][R2.64] ;
.L_outer:
        /*0010*/                   IADD3 R1, R1, 0x1, RZ ;
.L_inner:
        /*0020*/                   LD.E R3, desc[UR6][R4.64] ;
        /*0030*/                   LDG.E.128 R8, desc[UR6][R4.64] ;
        /*0040*/                   FADD R3, R3, R8 ;
        /*0050*/               @P0 BRA `(.L_inner) ;
        /*0060*/               @P1 BRA `(.L_outer) ;
        /*0070*/               @P2 BRA `(.L_end) ;
        /*0080*/                   ST.E desc[UR6][R4.64], R3 ;
.L_end:
        /*0090*/                   EXIT ;
//--------------------- .text.second --------------------------
.text.second:
.L_nothing_read:
        /*0000*/                   FADD R3, R3, R8 ;
        /*0010*/               @P0 BRA `(.L_nothing_read) ;
"""


@pytest.fixture
def machine_code():
    spec = importlib.util.spec_from_file_location("machine_code", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_inner_loops_that_read_memory_are_counted(machine_code):
    assert list(machine_code.loops(ASSEMBLY)) == [("first", 4, 2, 1)]


@pytest.mark.skipif(shutil.which("cc") is None, reason="the stand-in for a driver needs a C compiler")
def test_steps_are_replayed_and_all_of_a_frame_is_one_launch(tmp_path, monkeypatch):
    """A launch whose arguments are other objects than before costs the host ten times as much, and is remembered for good."""
    monkeypatch.delenv("VISCOIL_RECORDS", raising=False)
    command = [sys.executable, str(FILE.with_name("host_time.py")), "pvfs:1000", "pbf:500", "pbf:50000"]
    told = subprocess.run(command, env=os.environ | {"VISCOIL_CACHE": str(tmp_path)}, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    springs, small, large = (json.loads(line) for line in told.stdout.splitlines() if line.startswith("{"))
    for row in (springs, small, large):
        assert row["steps_of_frame"] >= 4
        assert row["anew"] == row["made"] == row["allocations"] == 0
        assert row["graphs"] < 8  # two with steps, the others once a frame: remembering, lists, sorting of memory
    assert small["blocks"] * 4 == large["blocks"] > 1000
