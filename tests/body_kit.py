"""Free bodies without joints or contacts, integrated by hand: what tests of the coupling need of a rigid world."""

from types import SimpleNamespace

import numpy as np


def cross(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def turn(w):
    angle = float(np.linalg.norm(w))
    k = cross(w / angle) if angle > 1e-12 else cross(w)
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


class FreeBodies:
    """Bodies of given mass and inertia (diagonal, about the centre), symplectic Euler."""

    def __init__(self, solid, masses, inertias, positions, gravity=(0, 0, 0), hearts=None):
        self.solid, self.masses, self.gravity = list(solid), np.asarray(masses, float), np.asarray(gravity, float)
        self.inertias = np.asarray(inertias, float)
        self.position = np.asarray(positions, float).copy()
        n = len(self.solid)
        self.rotation = np.tile(np.eye(3), (n, 1, 1))
        self.velocity = np.zeros((n, 6))
        self.hearts = np.zeros((n, 3)) if hearts is None else np.asarray(hearts, float)
        self.notes = []
        self.follows = np.ones(n, bool)

    def poses(self):
        return self.rotation, self.position

    def centres(self):
        return self.position + np.einsum("bij,bj->bi", self.rotation, self.hearts)

    def inverse(self):
        result = np.zeros((len(self.solid), 6, 6))
        for b in range(len(self.solid)):
            result[b, :3, :3] = np.eye(3) / self.masses[b]
            result[b, 3:, 3:] = self.rotation[b] @ np.diag(1 / self.inertias[b]) @ self.rotation[b].T
        return result

    def _moved(self, twist, dt):
        rotation = np.stack([turn(dt * w) @ r for w, r in zip(twist[:, 3:], self.rotation, strict=True)])
        centre = self.centres() + dt * twist[:, :3]
        return rotation, centre - np.einsum("bij,bj->bi", rotation, self.hearts)

    def predict(self, time, dt):
        twist = self.velocity.copy()
        twist[:, :3] += dt * self.gravity
        rotation, position = self._moved(twist, dt)
        inverse = self.inverse()
        return SimpleNamespace(rotation=rotation, position=position, centre0=self.centres(), twist=twist, inverse=inverse)

    def commit(self, impulse, time, dt):
        self.velocity[:, :3] += dt * self.gravity
        self.velocity += np.einsum("bij,bj->bi", self.inverse(), impulse)
        self.rotation, self.position = self._moved(self.velocity, dt)

    def twists(self):
        return self.velocity

    def state(self):
        return np.concatenate([self.rotation.ravel(), self.position.ravel(), self.velocity.ravel()])

    def restore(self, state):
        n = len(self.solid)
        self.rotation = state[: 9 * n].reshape(n, 3, 3).copy()
        self.position = state[9 * n : 12 * n].reshape(n, 3).copy()
        self.velocity = state[12 * n :].reshape(n, 6).copy()
