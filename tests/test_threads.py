"""The same bits, whatever the number of threads and however often it is run, alone or beside others in other threads."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kit import box_scene
from viscoil import native
from viscoil.simulate import Simulation
from viscoil.solvers import SOLVERS
from viscoil.turns import Turn

CODE = """
import sys
sys.path.insert(0, {folder!r})
from test_threads import fingerprint
print(fingerprint())
"""


def fingerprint():
    scene = box_scene(0.02, (14, 10, 12), solver={"method": "pbf", "vorticity": 0.1, "tolerance": 0.003, "iterations": 8})
    scene.fluid[0].jitter = 0.2
    ball = {"type": "sphere", "radius": 0.05}
    scene.emitter = [{"material": "honey", "shape": ball, "position": (0.14, 0.35, 0.12), "speed": 2.0}]
    sim = Simulation(type(scene)(**scene.to_dict()), device="cpu")
    digest = hashlib.sha256()
    for frame in sim.frames(3):
        for name in ("id", "position", "velocity", "density"):
            digest.update(frame[name].tobytes())
    return f"{len(frame)} {digest.hexdigest()}"


def run(threads):
    here = os.path.dirname(os.path.abspath(__file__))
    env = {**os.environ, "VISCOIL_THREADS": str(threads)}
    done = subprocess.run([sys.executable, "-c", CODE.format(folder=here)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_bits_do_not_depend_on_threads():
    one = run(1)
    assert int(one.split()[0]) > 1400
    assert run(4) == one
    assert fingerprint() == one and fingerprint() == one, "as many threads as this process has, twice"


BESIDE = (0.05, 0.02)  # spacings of scenes that run beside each other [m]
GENTLE = {"dcpbd_jacobi": {"iterations": 4}}  # as in test_every_solver.py


def small_run(method, spacing):
    """(digest of all frames, steps) of a small block that falls into a box, with an emitter above it."""
    scene = box_scene(spacing, (5, 5, 5), solver={"method": method, **GENTLE.get(method, {})})
    scene.fluid[0].jitter = 0.1
    disc = {"type": "sphere", "radius": 1.5 * spacing}
    place = (2.5 * spacing, 9 * spacing, 2.5 * spacing)
    scene.emitter = [{"material": scene.fluid[0].material, "shape": disc, "position": place, "speed": 40 * spacing}]
    scene.time.frame_time, scene.time.steps_per_frame = 0.004, 4
    sim = Simulation(type(scene)(**scene.to_dict()), device="cpu")
    digest = hashlib.sha256()
    for frame in sim.frames(6):
        for name in frame.names:
            digest.update(frame[name].tobytes())
    return digest.hexdigest(), sim.step_count, sim.particles


@pytest.fixture
def impatient():
    """Threads are switched as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "kernels"])
@pytest.mark.parametrize("method", sorted(SOLVERS))
def test_two_simulations_beside_each_other_have_the_bits_of_one_after_the_other(method, compiled, impatient):
    with native.use(compiled), ThreadPoolExecutor(2) as pool:
        alone = [small_run(method, spacing) for spacing in BESIDE]
        assert alone[0][0] != alone[1][0] and all(steps == 24 and count > 125 for _, steps, count in alone)
        assert list(pool.map(small_run, [method] * 2, BESIDE)) == alone


def test_what_a_thread_wants_of_the_compiled_passes_is_its_own():
    ready, done = threading.Event(), threading.Event()

    def leave_to_kernels():
        with native.use(False):
            ready.set()
            done.wait(20)
            return native.active()

    def ask():
        return native.active()

    there = native.active()
    with ThreadPoolExecutor(1) as other, ThreadPoolExecutor(1) as third:
        asked = other.submit(leave_to_kernels)
        assert ready.wait(20)
        assert native.active() is there and third.submit(ask).result() is there
        done.set()
        assert asked.result() is False
    with native.use(False), ThreadPoolExecutor(1) as started_inside:
        assert started_inside.submit(ask).result() is False


def test_who_asks_first_is_next():
    turn, order = Turn(), []

    def ask():
        with turn:
            order.append("other")

    with turn, turn:  # its owner may take it again
        other = threading.Thread(target=ask)
        other.start()
        while not turn._queue.locked():
            time.sleep(0.001)
    with turn:  # without a queue the thread that has just let go would be the first to take it
        order.append("again")
    other.join(20)
    assert order == ["other", "again"]


FORKING = """
import os, sys
from viscoil.scene.schema import Scene
from viscoil.simulate import Simulation

shape = {{"type": "box", "size": (0.2, 0.2, 0.2)}}
water, fluid = {{"density": 1000}}, {{"material": "water", "shape": shape}}
scene = Scene(spacing=0.05, solver={{"method": "pbf"}}, material={{"water": water}}, fluid=[fluid])
sim = Simulation(scene, "cpu") if {started} else None

def work():
    try:
        (sim or Simulation(scene, "cpu")).advance_frame()
        print("it ran", flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)

if {bare}:
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    else:
        work()
        sys.exit(0)
else:
    import multiprocessing
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0
work()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system copies no processes")
@pytest.mark.parametrize("bare", [True, False], ids=["os.fork", "multiprocessing"])
@pytest.mark.parametrize("started", [True, False], ids=["started", "fresh"])
def test_a_copy_of_a_process_says_what_to_do_instead_of_waiting(bare, started):
    code = FORKING.format(bare=bare, started=started)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    copy, parent = done.stdout.strip().splitlines()
    assert parent == "it ran"
    if started:
        assert copy.startswith("DeviceError") and "os.fork" in copy and "get_context('spawn')" in copy
    else:
        assert copy == "it ran"
