"""Why a pass over neighbours takes as long as it does on an H200, without one: rounds of its first-level cache, counted.

The cache has 32 banks of 4 bytes, each of which delivers one number per round. A warp's load asks for 128 bytes at a time (8
threads with 16 bytes, 16 with 8, 32 with 4) and takes as many rounds as the busiest bank has different numbers to deliver. On
the lattice of neighbour_probe.cu this is counted for what its kernels load, and compared with the times that they took:

    python benchmarks/bank_rounds.py

*In turns* is another order of the same lists (``turn_lists`` of the probe): neighbour k of particle i comes from that eighth of
128 bytes that (i + k) modulo 8 says, as long as there is one left.
"""

import numpy as np

PARTICLES, MULTIPROCESSORS, CLOCK = 1_000_000, 132, 1755.0  # per microsecond
EDGES = {1.95: 40, 2.5: 32}  # particles along an edge, by support in spacings
WARPS = 50  # that are looked at
# Bytes per neighbour, and the loads that fetch them: (begin, size).
LAYOUTS = {
    "16 bytes": (16, [(0, 16)]),
    "8 bytes": (8, [(0, 8)]),
    "12 bytes": (12, [(0, 4), (4, 4), (8, 4)]),
    "32 bytes": (32, [(0, 16), (16, 16)]),
}
# Microseconds that kernels of the probe took on an H200 (docs/performance.md).
MEASURED = {
    (1.95, "16 bytes"): 71, (1.95, "8 bytes"): 58, (1.95, "12 bytes"): 76, (1.95, "32 bytes"): 142,
    (2.5, "16 bytes"): 141, (2.5, "8 bytes"): 115, (2.5, "12 bytes"): 168, (2.5, "32 bytes"): 308,
}  # fmt: skip


def rounds(addresses: np.ndarray, size: int) -> int:
    """What a warp's load takes whose threads want ``size`` bytes at ``addresses`` (multiples of 4; negative: nothing)."""
    together = 128 // size
    total = 0
    for first in range(0, len(addresses), together):
        asked = addresses[first : first + together]
        words = np.unique(asked[asked >= 0][:, None] // 4 + np.arange(size // 4))
        if len(words):
            total += np.bincount(words % 32).max()
    return int(total)


def jittered_lattice(edge: int, support: float) -> np.ndarray:
    """Places in spacings, in the order of cells as long as the support."""
    rng = np.random.default_rng(0)
    at = np.indices((edge,) * 3).reshape(3, -1).T + 0.5 + 0.4 * (rng.random((edge**3, 3)) - 0.5)
    cell = np.floor(at / support).astype(int)
    return at[np.lexsort((cell[:, 0], cell[:, 1], cell[:, 2]))]


def neighbors(at: np.ndarray, i: int, support: float) -> np.ndarray:
    """Indices of the neighbours of particle i, rising."""
    close = np.flatnonzero(((at - at[i]) ** 2).sum(1) < support**2)
    return close[close != i]


def in_turns(row: np.ndarray, i: int) -> np.ndarray:
    """The same neighbours in another order, see above."""
    left = [list(row[row % 8 == part]) for part in range(8)]
    turned = []
    for k in range(len(row)):
        part = next(p % 8 for p in range(i + k, i + k + 8) if left[p % 8])
        turned.append(left[part].pop(0))
    return np.array(turned, int)


def warp(rows: list[np.ndarray], first: int) -> np.ndarray:
    """What the threads of a warp fetch in turn [turn, thread]: their lists, filled up to fours with the particle itself."""
    longest = max(len(row) for row in rows)
    turns = np.full((longest + -longest % 4, len(rows)), -1)
    for thread, row in enumerate(rows):
        turns[: len(row) + -len(row) % 4, thread] = first + thread
        turns[: len(row), thread] = row
    return turns


def main() -> None:
    seen = []  # support, layout, requests, rounds as found, in turns; per warp
    for support, edge in EDGES.items():
        at = jittered_lattice(edge, support)
        chosen = 32 * np.random.default_rng(1).choice(len(at) // 32 - 1, WARPS, replace=False)
        found = [[neighbors(at, i, support) for i in range(first, first + 32)] for first in chosen]
        other = [[in_turns(row, first + t) for t, row in enumerate(rows)] for rows, first in zip(found, chosen, strict=True)]
        as_found, turned = (np.vstack([warp(*pair) for pair in zip(lists, chosen, strict=True)]) for lists in (found, other))
        for layout, (stride, loads) in LAYOUTS.items():
            counts = [
                sum(rounds(np.where(turn < 0, -1, turn * stride + begin), size) for turn in turns for begin, size in loads)
                for turns in (as_found, turned)
            ]
            seen.append((support, layout, len(as_found) / WARPS, counts[0] / WARPS, counts[1] / WARPS))
    busy = PARTICLES / 32 / MULTIPROCESSORS / CLOCK  # microseconds for one round of every warp
    terms = np.array([[busy * row[3], row[2], 1.0] for row in seen])
    taken = np.array([float(MEASURED[row[:2]]) for row in seen])
    fit = np.linalg.lstsq(terms, taken, rcond=None)[0]
    print(f"microseconds = {fit[0]:.2f} × rounds of the cache + {fit[1]:.2f} × neighbours fetched + {fit[2]:.0f}\n")
    print("| support | per neighbour | rounds per fetch | measured | by rounds | rounds in turns | would take |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    for (support, layout, requests, before, after), us, row in zip(seen, taken, terms, strict=True):
        would = fit @ [busy * after, requests, 1.0]
        print(
            f"| {support} | {layout} | {before / requests:.1f} | {us:.0f} µs | {fit @ row:.0f} µs | {after / requests:.1f} "
            f"| {would:.0f} µs |"
        )


if __name__ == "__main__":
    main()
