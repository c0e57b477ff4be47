"""How a figure of capsules stands, steps and walks: lengths of its limbs, where its feet are, how its joints are bent.

All in the figure's own directions: x forward (at heading 0), y to its left, z up, the floor at z = 0; lengths in metres. A
gait is planned by its footprints. A foot bears weight for 60 % of a cycle: it touches with the heel, rolls onto the sole,
and leaves over the toes, always rolling, never sliding. In between it swings to the next print. The pelvis follows the
path as high as the legs let it, and knees follow from where hips and ankles are.
"""

import math
from dataclasses import dataclass, field

import numpy as np

# Lengths as fractions of the height.
THIGH = SHANK = 0.243
ANKLE = 0.04  # over the floor
HEEL, TOE, SOLE = -0.035, 0.085, 0.022  # ends of the foot's axis before the ankle, and its radius
HIP = 0.052  # from the middle
SPINE, NECK = 0.292, 0.315  # from the hips up to the line of the shoulders and to the neck
SHOULDER = 0.118
UPPER_ARM, FOREARM = 0.172, 0.155
LONGEST = 0.995  # of a leg: it never becomes quite straight

STANCE = 0.6  # share of a cycle in which a foot bears weight
ROLLED = 0.1  # phase at which the sole is down
RISING = 0.32  # phase at which the heel begins to rise
LEAD = 0.5 - RISING  # cycles until the left foot would touch first: the right heel begins to rise just at the start


def smooth(s: float) -> float:
    """0 below 0, 1 above 1, in between 3s² − 2s³."""
    s = min(max(s, 0.0), 1.0)
    return s * s * (3 - 2 * s)


def about(axis: int, degrees: float) -> np.ndarray:
    """Rotation about x, y or z (0, 1, 2)."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    u, v = (axis + 1) % 3, (axis + 2) % 3
    turn = np.eye(3)
    turn[u, u], turn[u, v], turn[v, u], turn[v, v] = c, -s, s, c
    return turn


@dataclass(frozen=True)
class Foot:
    """A foot: its ankle [m], the direction it points to [degrees], toes down [degrees], whether it bears weight."""

    ankle: np.ndarray
    heading: float
    pitch: float
    bears: bool

    def frame(self) -> np.ndarray:
        """Axes of the foot: forward along the sole, left, up."""
        return about(2, self.heading) @ about(1, self.pitch)


@dataclass
class Joints:
    """Angles [degrees] that the feet do not decide. Of arms and legs: left, right."""

    bend: float = 0.0  # of the back, forward
    lean: float = 0.0  # to the right
    twist: float = 0.0  # to the left
    nod: float = 0.0  # of the head, forward
    head_turn: float = 0.0  # to the left
    arm_forward: list[float] = field(default_factory=lambda: [2.0, 2.0])
    arm_out: list[float] = field(default_factory=lambda: [8.0, 8.0])
    arm_turn: list[float] = field(default_factory=lambda: [0.0, 0.0])
    elbow: list[float] = field(default_factory=lambda: [12.0, 12.0])


@dataclass(frozen=True)
class Gait:
    """A way of going: ``speed`` 0 means on the spot. Times in seconds, lengths in metres."""

    height: float
    speed: float
    cycle: float  # from one touch of a foot to its next
    turn: float  # of the heading, to the left [degrees/s]
    start: float
    end: float
    lift: float  # how high a swinging foot is raised
    off: float  # how far a foot is rolled over its toes when it leaves the floor [degrees]
    touch: float  # how far the toes are up when it comes down [degrees]

    # --- the path ------------------------------------------------------------------------------------------------------
    def pace(self, time: float) -> float:
        """Speed now as a fraction of the full one: rises and falls within a cycle."""
        return smooth((time - self.start) / self.cycle) * smooth((self.end - time) / self.cycle)

    def gone(self, time: float) -> float:
        """Seconds at full speed that would lead as far as the figure is at a moment: ∫ pace."""

        def ramp(s: float) -> float:  # ∫ smooth
            s = min(max(s, 0.0), 1.0)
            return s**3 - s**4 / 2

        t, cycle = time - self.start, self.cycle
        if t <= 0:
            return 0.0
        way = t - cycle / 2 if t > cycle else cycle * ramp(t / cycle)
        if math.isfinite(self.end) and time > self.end - cycle:  # falling: what is left of the ramp is missing at its end
            way = self.end - self.start - 1.5 * cycle + cycle * (0.5 - ramp((self.end - time) / cycle))
        return way

    def place(self, time: float) -> tuple[np.ndarray, float]:
        """Where the path is at a moment, and its heading [degrees]: straight, or an arc."""
        gone = self.gone(time)
        heading, way = self.turn * gone, self.speed * gone
        if abs(heading) < 1e-6:
            return np.array([way, 0.0, 0.0]), heading
        angle, radius = math.radians(heading), way / math.radians(heading)
        return np.array([radius * math.sin(angle), radius * (1 - math.cos(angle)), 0.0]), heading

    # --- the feet ------------------------------------------------------------------------------------------------------
    def phase(self, side: int, time: float) -> float:
        """Cycles of a foot (0 left, 1 right) since a first touch; whole numbers are touches."""
        return (time - self.start) / self.cycle - LEAD + 0.5 * side

    def _print(self, side: int, number: int) -> tuple[np.ndarray, float]:
        """Where the sole is down in the ``number``-th stance: below the ankle, and its heading."""
        middle = self.start + self.cycle * (number + STANCE / 2 + LEAD - 0.5 * side)
        middle = self.start if number <= 0 else middle  # nobody has stepped yet
        place, heading = self.place(middle)
        out = (1 - 2 * side) * HIP * self.height
        behind = -0.03 * self.height * min(1.0, self.speed * self.cycle / (0.7 * self.height)) * self.pace(middle)
        return place + about(2, heading) @ np.array([behind, out, 0.0]), heading + 5.0 * (1 - 2 * side)

    def _steps(self, side: int, number: int) -> bool:
        """Whether the foot really swings after its ``number``-th stance."""
        leaves = self.start + self.cycle * (number + STANCE + LEAD - 0.5 * side)
        rises = leaves - self.cycle * (STANCE - RISING)
        if rises < self.start - 1e-9 or leaves < self.end:
            return rises > self.start - 1e-9
        (here, _), (there, _) = self._print(side, number), self._print(side, number + 1)
        return float(np.linalg.norm(there - here)) > 1e-9  # a last step, to come to stand

    def _standing(self, side: int, number: int, phase: float) -> Foot:
        """A foot that bears weight, ``phase`` 0 to STANCE: rolling on heel or toes, or flat."""
        place, heading = self._print(side, number)
        pitch = 0.0
        if phase < ROLLED and self._steps(side, number - 1):
            pitch = -self.touch * (1 - smooth(phase / ROLLED))
        elif phase > RISING and self._steps(side, number):
            pitch = self.off * smooth((phase - RISING) / (STANCE - RISING))
        end, h = (TOE if pitch > 0 else HEEL), self.height
        # The ball at that end rolls: its centre moves on by its radius times the angle.
        along = h * (end + SOLE * math.radians(pitch))
        centre = place + about(2, heading) @ np.array([along, 0.0, h * SOLE])
        axes = about(2, heading) @ about(1, pitch)
        return Foot(centre + axes @ np.array([-h * end, 0.0, h * (ANKLE - SOLE)]), heading, pitch, True)

    def foot(self, side: int, time: float) -> Foot:
        """A foot (0 left, 1 right) at a moment."""
        phase = self.phase(side, time)
        number = math.floor(phase)
        phase -= number
        if phase <= STANCE or not self._steps(side, number):
            return self._standing(side, number, min(phase, STANCE))
        before, after = self._standing(side, number, STANCE), self._standing(side, number + 1, 0.0)
        s = (phase - STANCE) / (1 - STANCE)
        ease = smooth(s)
        ankle = before.ankle + ease * (after.ankle - before.ankle)
        ankle[2] += 16 * s * s * (1 - s) ** 2 * self.lift
        pitch = before.pitch + ease * (after.pitch - before.pitch)
        foot = Foot(ankle, before.heading + ease * (after.heading - before.heading), pitch, False)
        lowest = min(float(end[2]) for end in foot_ends(foot, self.height)) - SOLE * self.height
        foot.ankle[2] -= min(lowest, 0.0)
        return foot

    # --- the rest of the body ------------------------------------------------------------------------------------------
    def pelvis(self, time: float, feet: list[Foot]) -> tuple[np.ndarray, float]:
        """Middle between the hips, and where it faces [degrees]: over the path, as high as both legs reach."""
        place, heading = self.place(time)
        phase, pace = self.phase(0, time), self.pace(time)
        facing = heading - 5.0 * pace * math.cos(2 * math.pi * phase) * min(1.0, self.speed * self.cycle / self.height)
        sway = 0.018 * self.height * pace * math.cos(2 * math.pi * (phase - STANCE / 2))
        place = place + about(2, heading) @ np.array([0.0, sway, 0.0])
        longest = LONGEST * (THIGH + SHANK) * self.height
        heights = [(ANKLE + 0.99 * (THIGH + SHANK)) * self.height]
        for hip, foot in zip(hips(place, facing, self.height), feet, strict=True):
            away = float(np.hypot(*(foot.ankle - hip)[:2]))
            heights.append(float(foot.ankle[2]) + math.sqrt(max(longest**2 - away**2, 0.0)))
        soft, least = 0.006 * self.height, min(heights)  # below the least of them, without corners
        place[2] = least - soft * math.log(sum(math.exp((least - height) / soft) for height in heights))
        return place, facing

    def joints(self, time: float) -> Joints:
        """Arms swing against the legs, shoulders against the hips."""
        angles, pace = Joints(), self.pace(time)
        stretch = pace * min(1.2, 0.45 + 0.55 * self.speed * self.cycle / (0.75 * self.height))
        for side in (0, 1):
            swing = -math.cos(2 * math.pi * self.phase(side, time))
            angles.arm_forward[side] += 22.0 * stretch * swing
            angles.elbow[side] += (10.0 + 10.0 * swing) * stretch
        angles.twist = 9.0 * stretch * math.cos(2 * math.pi * self.phase(0, time))
        angles.bend = 3.0 * pace * min(1.0, self.speed)
        return angles


def hips(pelvis: np.ndarray, facing: float, height: float) -> list[np.ndarray]:
    """Left and right hip joint."""
    left = about(2, facing) @ np.array([0.0, HIP * height, 0.0])
    return [pelvis + left, pelvis - left]


def foot_ends(foot: Foot, height: float) -> list[np.ndarray]:
    """Centres of the balls at heel and toes."""
    down = (SOLE - ANKLE) * height
    return [foot.ankle + foot.frame() @ np.array([end * height, 0.0, down]) for end in (HEEL, TOE)]


def knee(hip: np.ndarray, ankle: np.ndarray, forward: np.ndarray, height: float) -> np.ndarray:
    """The joint between two bones of fixed length, bent towards ``forward``."""
    way = ankle - hip
    far = float(np.linalg.norm(way))
    along = way / far
    aside = forward - forward.dot(along) * along
    aside /= np.linalg.norm(aside)
    upper, lower = THIGH * height, SHANK * height
    share = (upper**2 - lower**2 + far**2) / (2 * far)
    return hip + share * along + math.sqrt(max(upper**2 - share**2, 0.0)) * aside
