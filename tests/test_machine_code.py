"""benchmarks/machine_code.py counts what the inner loops of a disassembly hold."""

import importlib.util
from pathlib import Path

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


def test_inner_loops_that_read_memory_are_counted():
    spec = importlib.util.spec_from_file_location("machine_code", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert list(module.loops(ASSEMBLY)) == [("first", 4, 2, 1)]
