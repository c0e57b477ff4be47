"""How tests are shared out to workers: what shares simulations and kernels stays together."""

import pytest

from groups import PLACES, ROOT, SPLIT, group_of, place_of


@pytest.mark.parametrize(
    ("test", "group", "place"),
    [
        ("tests/solvers/test_dcpbd.py::test_a[pbf-1]", "tests/solvers/test_dcpbd.py", "dcpbd"),
        ("tests/test_validation.py::test_case_holds[iisph_column]", "tests/test_validation.py:iisph_column", "iisph"),
        ("tests/test_validation.py::test_rows_of_the_table", "tests/test_validation.py:", "none"),
        ("tests/test_every_scene.py::test_a[dam_break-100000]", "tests/test_every_scene.py:dam_break", "pbf"),
        ("tests/test_every_solver.py::test_a[pbf]", "tests/test_every_solver.py", "several"),
        ("tests/test_scene_units.py::test_a", "tests/test_scene_units.py", "none"),
    ],
)
def test_groups_and_their_places(test, group, place):
    assert group_of(test) == group and place_of(group) == place and place in PLACES


def test_cases_are_looked_up_where_they_are():
    assert all((ROOT / pattern).parent.is_dir() for pattern in SPLIT.values())


def test_tests_of_a_file_run_in_one_worker(pytestconfig, tmp_path):
    """Workers of a run leave a note each; a file with two of them was torn apart."""
    name = getattr(pytestconfig, "workerinput", {}).get("workerid")
    if name is None:
        return  # one process runs all
    notes = tmp_path.parents[1]  # of all workers
    (notes / f"groups-{name}").touch()
    assert [path.name for path in notes.glob("groups-*")] == [f"groups-{name}"]
