"""Numbers that are none must not turn into plausible ones.

Clamps and thresholds do that: the smaller of NaN and 0 is 0 on a GPU, and a comparison with NaN is simply false. So what one of
them decides about is looked at before, and a result that rests on something lost is lost as well (:func:`unless_lost`). Within
the step it reaches a velocity or a position, where the step is undone and the run stops as after an explosion
(steps/integrate.py).

Looks at the bits: fast arithmetic may assume there are no NaNs.
"""

import quadrants as qd

from viscoil.particles import vec3


@qd.func
def is_finite(x: qd.f32) -> bool:
    """Neither infinite nor NaN."""
    return (qd.bit_cast(x, qd.i32) & 0x7F800000) != 0x7F800000


@qd.func
def all_finite(v: vec3) -> bool:
    """All three components are finite."""
    return is_finite(v[0]) and is_finite(v[1]) and is_finite(v[2])


@qd.func
def unless_lost(value: qd.f32, witness: qd.f32) -> qd.f32:
    """``value``, or NaN if ``witness``, which it was made from, is not finite."""
    return qd.bit_cast(qd.select(is_finite(witness), qd.bit_cast(value, qd.i32), 0x7FC00000), qd.f32)
