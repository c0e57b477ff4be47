// Work is handed out in small pieces from one counter, and nobody ever waits for a thread that has not begun: on a machine
// that others use too, a worker that gets no core simply takes no piece. Nothing spins.
#include "pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace viscoil {
namespace {

struct Pool {
    std::mutex lock;
    std::condition_variable work, done;
    int wanted = 1, workers = 0;
    // The job, and who is at it. Guarded by the lock but for the counter.
    bool open = false;
    long job = 0;
    int busy = 0, places = 0;
    Pass body = nullptr;
    const void* task = nullptr;
    int items = 0, grain = 1;
    std::atomic<int> next{0};
};

// Never destroyed: workers sleep in it until the process is gone.
Pool& pool() {
    static Pool* one = new Pool;
    return *one;
}

void take_pieces(Pool& p, Pass body, const void* task, int items, int grain) {
    for (;;) {
        const int begin = p.next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= items) return;
        body(task, begin, std::min(begin + grain, items));
    }
}

void serve(Pool& p) {
    long seen = 0;
    std::unique_lock<std::mutex> hold(p.lock);
    for (;;) {
        p.work.wait(hold, [&] { return p.open && p.job != seen && p.places > 0; });
        seen = p.job;
        p.places--;
        p.busy++;
        const Pass body = p.body;
        const void* task = p.task;
        const int items = p.items, grain = p.grain;
        hold.unlock();
        take_pieces(p, body, task, items, grain);
        hold.lock();
        if (--p.busy == 0) p.done.notify_one();
    }
}

}  // namespace

void set_threads(int count) {
    Pool& p = pool();
    std::lock_guard<std::mutex> hold(p.lock);
    p.wanted = std::max(count, 1);
}

void share_out(Pass body, const void* task, int items, int grain) {
    Pool& p = pool();
    static std::mutex one_job;  // callers take turns
    std::lock_guard<std::mutex> turn(one_job);
    const int helpers = std::min(p.wanted - 1, (items + grain - 1) / grain - 1);
    if (helpers <= 0) {
        if (items > 0) body(task, 0, items);
        return;
    }
    {
        std::lock_guard<std::mutex> hold(p.lock);
        while (p.workers < helpers) {
            std::thread(serve, std::ref(p)).detach();
            p.workers++;
        }
        p.body = body;
        p.task = task;
        p.items = items;
        p.grain = grain;
        p.next.store(0, std::memory_order_relaxed);
        p.places = helpers;
        p.open = true;
        p.job++;
    }
    for (int k = 0; k < helpers; k++) p.work.notify_one();
    take_pieces(p, body, task, items, grain);
    std::unique_lock<std::mutex> hold(p.lock);
    p.open = false;
    p.done.wait(hold, [&] { return p.busy == 0; });
}

}  // namespace viscoil
