// Threads that sleep between jobs.
#pragma once
#include "tasks.h"

namespace viscoil {

// How many threads may work, the caller included. Takes effect with the next job.
void set_threads(int count);

// body(task, begin, end) over all of 0..items, in pieces of ``grain``; returns when everything is done.
void share_out(Pass body, const void* task, int items, int grain);

}  // namespace viscoil
