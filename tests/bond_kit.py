"""Small worlds with bonds for tests, and what Takahashi et al. 2014 say about them, written with NumPy in double precision.

The reference keeps one dictionary of bonds by pairs of ids, a double loop, and singular value decompositions.
"""

from itertools import combinations

import numpy as np

import kit
from viscoil.particles import allocate_array, vec3
from viscoil.sph.bonds import NEVER
from viscoil.sph.calibration import calibrate
from viscoil.steps.bonding import Bonds
from viscoil.world import World

D, H, DT, MASS = 0.04, 0.08, 0.002, 0.064
LATTICE = calibrate(D, H)
COMMON = {
    "stiffness": 0.2, "lower": 0.0, "weakening": 0.0, "yielding": 0.02, "merging": 0.0, "splitting": NEVER, "flow": 0.0,
    "flow_yield": 0.0,
}  # fmt: skip


def numbers(scheme, *materials, reach=H):
    """Columns of BondNumbers from dictionaries that say what differs from COMMON."""
    materials = [{**COMMON, **m} for m in (materials or ({},))]
    kick = DT / MASS if scheme == "springs" else 1 / DT
    return {"support": [H], "reach": [reach], "kick": [kick], **{k: [m[k] for m in materials] for k in COMMON}}


def cloud(cells=(5, 5, 5), jitter=0.2, seed=1):
    return kit.lattice(cells, D, jitter, seed).astype(np.float32).astype(float)


class Bench:
    """A world of particles at rest with bonds, frozen at the start."""

    def __init__(self, x, scheme="springs", *materials, freeze=True, inverse_mass=1.0, material=0, box=None, **options):
        self.world = World(D, H, LATTICE, [], box, 1.01 * H)
        self.bonds = Bonds(scheme, **options)
        self.world.carry(self.bonds.carried)
        n = len(x)
        self.add(x, inverse_mass=np.broadcast_to(inverse_mass, n), material=np.broadcast_to(material, n))
        self.set(*materials)
        if freeze:
            self.bonds.freeze(self.world)

    def set(self, *materials, **more):
        self.bonds.set(**numbers(self.bonds.scheme, *materials, **more))

    def add(self, x, **values):
        self.world.add({"position": np.asarray(x, np.float32), "volume": np.full(len(x), D**3), **values})
        self.world.fit_cells()

    def move(self, x):
        """Puts particle number i to x[i]."""
        self.world.set("position", np.asarray(x, np.float32)[self.world.get("id")])
        self.world.fit_cells()

    def by_id(self, values):
        out = np.full((self.world.next_id, *values.shape[1:]), np.nan)
        out[self.world.get("id")] = values
        return out

    @property
    def strength(self):
        return self.by_id(self.world.carried["strength"].get(self.world.count)[:, 0])

    def step(self, times=1):
        """Updates and corrects; Δv by id."""
        w, b = self.world, self.bonds
        for _ in range(times):
            w.neighbors.find_all(w.particles.position, w.particles, w.count)
            velocity = allocate_array(vec3, w.capacity)
            kept = {name: rows.get(w.count).copy() for name, rows in w.carried.items()}
            b.update(w)
            while needed := b.short_of_room():
                for name, rows in kept.items():
                    w.carried[name].set(rows)
                b.make_room(w, needed)
                b.update(w)
            b.correct(w, velocity)
        return self.by_id(velocity.to_numpy()[: w.count])

    def table(self):
        """{(i, j): what end i remembers}, both ways."""
        w = self.world
        number = w.carried["number"].get(w.count)[:, 0]
        partner, rest = w.carried["partner"].get(w.count), w.carried["rest"].get(w.count)
        rest = rest.reshape(*partner.shape, -1)
        ids = w.get("id")
        found = {}
        for i in range(w.count):
            for a in range(number[i]):
                pair = int(ids[i]), int(partner[i, a])
                assert pair not in found, "a bond is there twice"
                found[pair] = rest[i, a]
        return found

    def check_symmetric(self):
        """Both ends hold every bond, with the same bits; returns the number of bonds."""
        table = self.table()
        for (i, j), rest in table.items():
            other = table[j, i]
            assert np.array_equal(np.roll(other, len(other) // 2), rest), (i, j)
        return len(table) // 2


class Pairs:
    """Springs and position-based corrections (4.2, 4.3), by id."""

    def __init__(self, x, scheme="springs", *materials, inverse_mass=1.0, material=0, two_sided=False, normalise=False):
        n = len(x)
        self.scheme, self.two_sided, self.normalise = scheme, two_sided, normalise
        self.m = MASS / np.abs(np.broadcast_to(inverse_mass, n)).astype(float)
        self.kinds = [{**COMMON, **m} for m in (materials or ({},))]
        self.material = np.broadcast_to(material, n)
        self.s = np.ones(n)
        x = self.rounded(x)
        self.rest = {}
        for i, j in combinations(range(n), 2):
            if (r := np.linalg.norm(x[i] - x[j])) < H and self.bonded(i, j):
                self.rest[i, j] = r

    @staticmethod
    def rounded(x):
        return np.asarray(x, np.float32).astype(float)

    def of(self, name, i):
        return self.kinds[self.material[i]][name]

    def mean(self, name, i, j):
        return (self.of(name, i) + self.of(name, j)) / 2

    def bonded(self, i, j):
        return self.of("stiffness", i) > 0 and self.of("stiffness", j) > 0

    def step(self, x):
        x, n = self.rounded(x), len(x)
        for (i, j), rest in list(self.rest.items()):
            r = np.linalg.norm(x[i] - x[j])
            flowed_away = self.mean("flow", i, j) > 0 and rest > H
            if abs(r - rest) > self.mean("splitting", i, j) * H or flowed_away:
                del self.rest[i, j]
                continue
            share, free = self.mean("flow", i, j), self.mean("flow_yield", i, j)
            excess = np.sign(r - rest) * max(abs(r - rest) - free * rest, 0)
            self.rest[i, j] = rest + share * excess
        for i, j in combinations(range(n), 2):
            r = np.linalg.norm(x[i] - x[j])
            if (i, j) not in self.rest and r < self.mean("merging", i, j) * H and self.bonded(i, j):
                self.rest[i, j] = r
        number, loss = np.zeros(n), np.zeros(n)
        for pair in self.rest:
            for i in pair:
                number[i] += 1
        k = self.s * [self.of("stiffness", i) for i in range(n)]
        impulse = np.zeros((n, 3))
        for (i, j), rest in self.rest.items():
            d = x[i] - x[j]
            r = np.linalg.norm(d)
            stretch = r - rest if self.two_sided else max(r - rest, 0)
            push = (k[i] + k[j]) / 2 * stretch * d / r
            if self.scheme == "springs":
                push = push * DT
            else:
                push = push * self.m[i] * self.m[j] / (self.m[i] + self.m[j]) / DT
            if self.normalise:
                push = push * 3 / max(number[i], number[j])
            impulse[i] -= push
            impulse[j] += push
            if stretch / H > self.mean("yielding", i, j):
                loss[[i, j]] += self.mean("weakening", i, j)
        lower = np.array([self.of("lower", i) for i in range(n)])
        weaker = np.maximum(self.s - loss / np.maximum(number, 1), lower)
        self.s = np.where((lower < self.s) & (number > 0), weaker, self.s)
        return impulse / self.m[:, None]


class Shapes:
    """Shape matching (4.1) with references per region, by id."""

    def __init__(self, x, *materials, inverse_mass=1.0, material=0, goal="lattice", conserve=True):
        n = len(x)
        self.goal, self.conserve = goal, conserve
        self.m = 1 / np.abs(np.broadcast_to(inverse_mass, n)).astype(float)
        self.kinds = [{**COMMON, **m} for m in (materials or ({},))]
        self.material = np.broadcast_to(material, n)
        self.s = np.ones(n)
        x = Pairs.rounded(x)
        self.at = {i: {i: x[i]} for i in range(n)}  # places of the members in each region's frame
        for i, j in combinations(range(n), 2):
            if np.linalg.norm(x[i] - x[j]) < H and self.of("stiffness", i) > 0 and self.of("stiffness", j) > 0:
                self.at[i][j], self.at[j][i] = x[j], x[i]

    of, mean = Pairs.of, Pairs.mean

    def fit(self, x):
        self.motion = {}
        for i, at in self.at.items():
            who = list(at)
            m, y, y0 = self.m[who, None], x[who], np.array([at[k] for k in who])
            s, s0 = (m * y).sum(0) / m.sum(), (m * y0).sum(0) / m.sum()
            r = np.eye(3)
            if len(who) > 1:
                u, _, vt = np.linalg.svd((m * (y - s)).T @ (y0 - s0))
                r = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
            self.motion[i] = r, s, s0

    def goal_of(self, k, region):
        r, s, s0 = self.motion[region]
        return r @ (self.at[region][k] - s0) + s

    def step(self, x):
        x, n = Pairs.rounded(x), len(x)
        self.fit(x)
        gone = [
            (i, j)
            for i, j in combinations(range(n), 2)
            if j in self.at[i]
            and max(np.linalg.norm(self.goal_of(j, i) - x[j]), np.linalg.norm(self.goal_of(i, j) - x[i]))
            > self.mean("splitting", i, j) * H
        ]
        for i, j in gone:
            del self.at[i][j], self.at[j][i]
        for i, j in combinations(range(n), 2):
            close = np.linalg.norm(x[i] - x[j]) < self.mean("merging", i, j) * H
            if close and j not in self.at[i] and self.of("stiffness", i) > 0 and self.of("stiffness", j) > 0:
                for a, b in ((i, j), (j, i)):
                    r, s, s0 = self.motion[a]
                    self.at[a][b] = s0 + r.T @ (x[b] - s)
        self.fit(x)
        k = self.s * [self.of("stiffness", i) for i in range(n)]
        dv, mean = np.zeros((n, 3)), np.zeros((n, 3))
        size = np.array([len(self.at[i]) for i in range(n)])
        for i in range(n):
            regions = [j for j in self.at[i] if size[j] >= 4]
            if self.goal == "cluster":
                regions = [j for j in regions if j == i]
            miss = {j: self.goal_of(i, j) - x[i] for j in regions}
            if miss:
                mean[i] = sum(miss.values()) / len(miss)
            if self.goal == "lattice" and self.conserve:
                dv[i] = sum((k[j] / size[j] * d for j, d in miss.items()), np.zeros(3)) / DT
            else:
                dv[i] = k[i] * mean[i] / DT
        if self.goal == "cluster" and self.conserve:
            impulse, total = self.m[:, None] * dv, {i: sum(self.m[list(at)]) for i, at in self.at.items()}
            for i, at in self.at.items():
                for member in at:
                    dv[member] -= impulse[i] / total[i]
        for i in range(n):
            lower = self.of("lower", i)
            if lower < self.s[i] and np.linalg.norm(mean[i]) / H > self.of("yielding", i):
                self.s[i] = max(self.s[i] - self.s[i] * self.of("weakening", i), lower)
        return dv
