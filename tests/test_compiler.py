"""Shortcuts through the kernel compiler give what they stand for."""

import ast
import textwrap

import quadrants as qd
from quadrants.lang import _func_base, _kernel_impl_dataclass, _ndarray, matrix

from kit import backend
from viscoil.particles import allocate_array, vec3

SOURCE = """
def step(particles: Particles, grid: Grid, out: Floats):
    for i in range(particles.count[0]):
        x = particles.position[i] - grid.torus.low[0]
        if particles.mass[i] > 0.0 and grid.other[i] < self.least:
            out[i] += work(grid.torus.low, x).norm() * particles.position[i].x
"""
LOCALS = {f"__qd_particles__qd_{name}" for name in ("count", "position", "mass")} | {"__qd_grid__qd_torus__qd_low"}


def test_members_of_tables_become_the_same_names_at_the_same_places():
    ours, theirs = ast.parse(SOURCE), ast.parse(SOURCE)
    flattener = _kernel_impl_dataclass.FlattenAttributeNameTransformer(LOCALS)
    theirs = ast.fix_missing_locations(ast.NodeTransformer.visit(flattener, theirs))
    assert ast.dump(theirs, include_attributes=True) != ast.dump(ast.parse(SOURCE), include_attributes=True)
    ours = _kernel_impl_dataclass.unpack_ast_struct_expressions(ours, LOCALS)
    assert ast.dump(ours, include_attributes=True) == ast.dump(theirs, include_attributes=True)


def test_lines_are_unfolded_as_before():
    for line in (*SOURCE.splitlines(), "\tx = 1\t# tabs"):
        assert _func_base.textwrap.fill(line, tabsize=4, width=9999) == textwrap.fill(line, tabsize=4, width=9999)


def test_new_arrays_do_not_look_who_asked_for_them(monkeypatch):
    backend.start("cpu")
    asked = []
    for module in (_ndarray, matrix):
        shortcut = module.get_traceback
        monkeypatch.setattr(module, "get_traceback", lambda stacklevel=1, shortcut=shortcut: asked.append(shortcut()) or "")
    allocate_array(qd.f32, 3), allocate_array(vec3, 3)
    assert asked == ["", ""]
