"""Which tests one worker runs in one go, and in which order workers take them."""

import functools
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Files whose tests take minutes: their cases (the first parameter) are handed to workers one by one, others file by file.
SPLIT = {
    "tests/test_validation.py": "src/viscoil/validation/{}.py",
    "tests/test_every_scene.py": "src/viscoil/scene/library/{}.toml",
    "tests/test_gpu_numbers.py": "src/viscoil/solvers/{}.py",
}
# One worker begins with the first of these, another with the last, and they meet among short ones. A process does not see what
# others compile while it runs, and most kernels belong to one method.
PLACES = ("dcpbd", "iisph", "none", "several", "pbf", "pvfs")
METHODS = {"dcpbd": "dcpbd|channel import|import channel|shear_wave", "iisph": "iisph|takahashi|press import", "pbf": "pbf",
           "pvfs": "pvfs|clavet import"}  # fmt: skip


def group_of(nodeid: str) -> str:
    """What one worker runs in one go: a file, whose tests share simulations and kernels, or one case of a file of SPLIT."""
    file, _, test = nodeid.partition("::")
    case = test.partition("[")[2].rstrip("]").partition("-")[0]
    return f"{file}:{case}" if file in SPLIT else file


@functools.cache
def place_of(group: str) -> str:
    """Out of PLACES: the method that most lines of a group's text speak of that speak of any."""
    file, _, case = group.partition(":")
    path = ROOT / SPLIT.get(file, file).format(case)
    lines = path.read_text().splitlines() if path.is_file() else []
    said = {name: sum(bool(re.search(rf"(?<![a-z])({words})", line)) for line in lines) for name, words in METHODS.items()}
    if file.startswith("tests/studio/"):
        return "pbf"  # its scenes are, and it takes long
    most = max(said, key=said.get)
    return most if 2 * said[most] > sum(said.values()) else "several" if said[most] else "none"
