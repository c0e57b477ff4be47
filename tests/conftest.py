"""Tests run on the CPU and share one kernel cache, so that only the first run of all compiles."""

import getpass
import os
import tempfile
from pathlib import Path

import pytest

from groups import PLACES, group_of, place_of

os.environ.setdefault("VISCOIL_DEVICE", "cpu")
# Two workers share the machine, and kernels are compiled anew for every number of threads: two, as most tests that choose one.
os.environ.setdefault("VISCOIL_THREADS", "2")
os.environ.setdefault("VISCOIL_CACHE", str(Path(tempfile.gettempdir()) / f"viscoil-test-kernels-{getpass.getuser()}"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Groups for ``--dist loadgroup``, told from names: marks of groups do not reach pytest-xdist 3.8 under pytest 9.2."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

        def _assign_work_unit(self, node):
            if int(node.gateway.id.removeprefix("gw")) % 2:  # every second worker takes them from the end
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return Groups(config, log)


def pytest_collection_modifyitems(config, items):
    """In the order of PLACES where there are workers."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: PLACES.index(place_of(group_of(item.nodeid))))


@pytest.fixture(autouse=True)
def _kernels_are_shared():
    """What a test compiled is there for the other workers and for processes that tests start, not only at the end of all."""
    yield
    from viscoil import backend

    backend.keep_kernels()
