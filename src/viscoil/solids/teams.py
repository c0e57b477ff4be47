"""Sums over the members of clusters: wide, few loops, and always the same bits.

A cluster's slots go in chunks of 256, each of which belongs to one cluster (those of rigid bodies come first). On a GPU a
chunk is a block of threads. A sum takes two loops: in the first every chunk adds up its members (:func:`hand_over`), in the
second every chunk adds up the chunks of its cluster (:func:`whole`) and goes on with what its members need that for. That the
chunks of a cluster all do the same work again costs nothing there; a loop, or a single thread that all wait for, would.

On a CPU eight chunks are a task of one thread, and a small loop in between adds up the chunks of clusters (:func:`add_up`).
Pattern, inside a kernel:

    qd.loop_config(block_dim=256)
    for worker in range(crew(b, True, False)):
        chunk, place = worker // qd.static(pace()), worker % qd.static(pace())
        while chunk < chunks_for(place, b.number[2]):
            slot = b.chunk_slot[chunk] + place
            while slot < end_of(chunk, b): ...; slot += qd.static(workers())
            hand_over(chunk, place, qd.Vector([...]), 6, b)
            chunk += qd.static(crews())
    add_up(b)
    (the same loop)
            total = whole(chunk, place, 6, b)

A loop whose length is read from memory costs a GPU another kernel, which reads it. Hence as many blocks as a GPU holds take
chunk after chunk there, however many there are.
"""

import quadrants as qd

from viscoil.solids.clusters import Clusters
from viscoil.sph.sums import on_gpu, team_sums, workers


def pace() -> int:
    """Iterations of a loop per chunk. On a CPU the first of them does the work: a thread takes 512 at once, hence 8 chunks."""
    return 256 if on_gpu() else 64


def crews() -> int:
    """From a chunk to the next one of the same threads; on a CPU there is none."""
    return 256 if on_gpu() else 1 << 30


@qd.func
def crew(b: Clusters, rigid: qd.template(), soft: qd.template()) -> qd.i32:
    """How far a loop over the chunks of rigid or soft clusters or both has to run."""
    result = qd.cast(qd.static(crews() * pace() if on_gpu() else 0), qd.i32)
    if qd.static(not on_gpu()):
        first = 0
        end = b.number[2]
        if qd.static(soft):
            end = b.number[3]
            if qd.static(not rigid):
                first = b.number[2]
        result = (end - first) * qd.static(pace())
    return result


@qd.func
def chunks_for(place: qd.i32, chunks: qd.i32) -> qd.i32:
    """``chunks``, or 0 for an iteration of a chunk that has nothing to do."""
    result = chunks
    if qd.static(not on_gpu()):
        result = qd.select(place == 0, chunks, 0)
    return result


@qd.func
def end_of(chunk: qd.i32, b: Clusters) -> qd.i32:
    """The slot after a chunk's last; its first where its cluster is not there yet."""
    c = b.chunk_cluster[chunk]
    first = b.chunk_slot[chunk]
    return qd.select(b.first_id[c] >= 0, qd.min(first + 256, b.begin[c + 1]), first)


@qd.func
def hand_over(chunk: qd.i32, place: qd.i32, value, number: qd.template(), b: Clusters):
    """A chunk's ``number`` sums (at most 16), from what each of its threads has added up."""
    total = team_sums(value, number)
    if place == 0:
        for k in qd.static(range(number)):
            b.chunk_sum[16 * chunk + k] = total[k]


@qd.func(requires_top_level=True)
def add_up(b: Clusters):
    """Sums of clusters from those of chunks, where :func:`whole` does not find them itself."""
    if qd.static(not on_gpu()):
        for c in range(b.number[0]):
            for k in range(16):
                total = 0.0
                for chunk in range(b.chunk[c], b.chunk[c] + (b.begin[c + 1] - b.begin[c] + 255) // 256):
                    total += b.chunk_sum[16 * chunk + k]
                b.sum[16 * c + k] = total


@qd.func
def whole(chunk: qd.i32, place: qd.i32, number: qd.template(), b: Clusters):
    """The sums of a chunk's cluster."""
    c = b.chunk_cluster[chunk]
    value = qd.Vector([0.0 for _ in qd.static(range(number))])
    if qd.static(on_gpu()):
        piece = place
        while piece < (b.begin[c + 1] - b.begin[c] + 255) // 256:
            for k in qd.static(range(number)):
                value[k] += b.chunk_sum[16 * (b.chunk[c] + piece) + k]
            piece += qd.static(workers())
        value = team_sums(value, number)
    else:
        for k in qd.static(range(number)):
            value[k] = b.sum[16 * c + k]
    return value
