// The neighbour list: the same entries in the same order as sph/neighbors.py lists them.
#pragma once
#include <cstdlib>
#include <cstring>

#include "tasks.h"
#include "wide.h"

namespace {

// Who may be a neighbour of the particles of one cell, out of the 27 cells around it. Memory grows and stays.
struct Candidates {
    float *x = nullptr, *y = nullptr, *z = nullptr;
    int* who = nullptr;
    int count = 0, room = 0;

    void reserve(int needed) {
        if (needed + LANES <= room) return;
        const int more = 2 * (needed + LANES);
        float* block = static_cast<float*>(std::realloc(x, size_t(more) * 16));
        if (!block) std::abort();
        // What was gathered lies at the old distances: later parts first, they go farther.
        for (int part = 3; part > 0; part--) std::memmove(block + size_t(part) * more, block + size_t(part) * room, 4 * size_t(count));
        x = block;
        y = x + more;
        z = y + more;
        who = reinterpret_cast<int*>(z + more);
        room = more;
    }
};

// The box of a cell's particles. Whoever is too far from it is too far from each of them: subtraction, squares and sums
// round monotonously, so this drops nobody whom the test of single pairs would keep.
struct Box {
    Wide low[3], high[3];

    Box(const viscoil::ListTask& t, int from, int to) {
        const float* const axes[3] = {t.x, t.y, t.z};
        for (int a = 0; a < 3; a++) {
            float least = axes[a][from], most = least;
            for (int k = from + 1; k < to; k++) {
                least = axes[a][k] < least ? axes[a][k] : least;
                most = axes[a][k] > most ? axes[a][k] : most;
            }
            low[a] = all(least);
            high[a] = all(most);
        }
    }

    Wide distance2(Wide x, Wide y, Wide z) const {
        return square(largest(largest(low[0] - x, x - high[0]), all(0)), largest(largest(low[1] - y, y - high[1]), all(0)),
                      largest(largest(low[2] - z, z - high[2]), all(0)));
    }
};

inline void gather(const viscoil::ListTask& t, int from, int to, const Box& box, Candidates& near) {
    const Wide reach2 = all(t.reach2);
    near.reserve(near.count + to - from);
    for (int k = from; k < to; k += LANES) {
        Wide x, y, z;
        WideInt who;
        Mask close;
        if (to - k >= LANES) {
            x = read(t.x + k);
            y = read(t.y + k);
            z = read(t.z + k);
            who = read(t.order + k);
            close = less(box.distance2(x, y, z), reach2);
        } else {
            const Mask valid = first(to - k);
            x = read(t.x + k, valid);
            y = read(t.y + k, valid);
            z = read(t.z + k, valid);
            who = read(t.order + k, valid, -1);
            close = both(valid, less(box.distance2(x, y, z), reach2));
        }
        const Packed front(close);
        write(near.x + near.count, front.pack(x));
        write(near.y + near.count, front.pack(y));
        write(near.z + near.count, front.pack(z));
        write(near.who + near.count, front.pack(who));
        near.count += number(close);
    }
}

inline int wrapped(int c, int dim) { return c < 0 ? c + dim : (c >= dim ? c - dim : c); }

inline void surroundings(const viscoil::ListTask& t, int c, Candidates& near) {
    const int dx = t.dims[0], dy = t.dims[1], dz = t.dims[2];
    const int cx = c % dx, cy = c / dx % dy, cz = c / (dx * dy);
    const Box box(t, t.start[c], t.start[c + 1]);
    near.count = 0;
    for (int row = 0; row < 9; row++) {
        const int ry = wrapped(cy + row % 3 - 1, dy), rz = wrapped(cz + row / 3 - 1, dz);
        const int line = (rz * dy + ry) * dx;
        gather(t, t.start[line + (cx > 0 ? cx - 1 : 0)], t.start[line + (cx + 2 < dx ? cx + 2 : dx)], box, near);
        if (cx == 0 || cx == dx - 1) {
            const int other = line + (cx == 0 ? dx - 1 : 0);
            gather(t, t.start[other], t.start[other + 1], box, near);
        }
    }
    near.reserve(near.count);
    write(near.x + near.count, all(__builtin_inff()));  // the last vector is filled up with nobody's neighbours
}

inline void list_one(const viscoil::ListTask& t, int place, int i, const Candidates& near) {
    const Wide x = all(t.x[place]), y = all(t.y[place]), z = all(t.z[place]), reach2 = all(t.reach2);
    int* out = t.index + int64_t(i) * t.row;
    int found = 0;
    for (int k = 0; k < near.count; k += LANES) {
        const Wide dx = x - read(near.x + k), dy = y - read(near.y + k), dz = z - read(near.z + k);
        const WideInt who = read(near.who + k);
        const Mask hit = less_but(square(dx, dy, dz), reach2, who, i);
        const WideInt front = Packed(hit).pack(who);
        const int hits = number(hit), room = t.width - found;
        if (room >= LANES)
            write(out + found, front);
        else if (room > 0)
            write(out + found, front, first(hits < room ? hits : room));
        found += hits;
    }
    t.count[i] = found < t.width ? found : t.width;
    if (found > t.width) {
        int seen = __atomic_load_n(t.needed, __ATOMIC_RELAXED);
        while (seen < found &&
               !__atomic_compare_exchange_n(t.needed, &seen, found, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
    }
}

// Places begin..end of the cell order: particles of one cell share their candidates.
void list_pass(const void* task, int begin, int end) {
    const viscoil::ListTask& t = *static_cast<const viscoil::ListTask*>(task);
    static thread_local Candidates mine;
    Candidates near = mine;  // a copy of its pointers: those of a thread are looked up anew at every use
    int cell = -1;
    for (int place = begin; place < end; place++) {
        const int i = t.order[place];
        if (t.inverse_mass[i] == 0.0f) {
            t.count[i] = 0;
            continue;
        }
        if (t.cell[i] != cell) {
            cell = t.cell[i];
            surroundings(t, cell, near);
        }
        list_one(t, place, i, near);
    }
    mine = near;
}

}  // namespace
