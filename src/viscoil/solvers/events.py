"""What may happen to all connections of a method at one moment."""

from typing import Literal

from viscoil.model import Model
from viscoil.units import Time


class SpringEvent(Model):
    """Something that happens to all springs at one moment."""

    time: Time
    """moment [s]"""
    do: Literal["freeze", "clear"]
    """freeze: every pair within h gets a spring of its present length; clear: all springs are gone"""
