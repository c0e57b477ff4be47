"""Multipliers and strides of sums of which one is lost, on the device that is asked for; as a program for an emulated GPU.

python lost_sums.py DEVICE
"""

import sys

import numpy as np
import quadrants as qd

from viscoil import backend, transfer
from viscoil.constraints.density import DensityNumbers, _multiplier
from viscoil.particles import Floats, Uploaded, allocate_array
from viscoil.sph.descent import strides


@qd.kernel
def _of_lost_sums(lost: Floats, c: DensityNumbers, out: Floats):
    """λ of eq. 11 of a density and of a sum of squares, α of γ and of δ; and an α of which nothing is lost."""
    for _ in range(1):
        a, _a = _multiplier(lost[0], 1.0, 1.0, c)
        b, _b = _multiplier(1.5, lost[0], 1.0, c)
        out[0] = a
        out[1] = b
        out[2] = strides(lost[0], 1.0, 0.0, 0.0)[0]
        out[3] = strides(1.0, lost[0], 2.0, 0.5)[0]
        out[4] = strides(1.0, 2.0, 0.0, 0.0)[0]


def check(device: str, lost: float) -> None:
    """All that is made of the lost sum is NaN."""
    backend.start(device)
    uploaded = Uploaded(DensityNumbers)
    numbers = {"support": 1.0, "softness": 0.1, "repulsion": 0.0, "reference": 1.0, "unilateral": 1, "share": 0.1}
    given, out = allocate_array(qd.f32, 1), allocate_array(qd.f32, 5)
    transfer.write(given, [lost])
    _of_lost_sums(given, uploaded.set(**numbers), out)
    found = transfer.read(out)
    assert np.isnan(found[:4]).all(), found
    assert found[4] == 0.5


if __name__ == "__main__":
    for each in (np.nan, np.inf):
        check(sys.argv[1], each)
