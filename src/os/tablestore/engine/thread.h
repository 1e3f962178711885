// What the engine's threads ask of the kernel.
#pragma once

namespace tablestore {

// As `top -H` and `perf` show the calling thread; at most 15 characters.
void name_thread(const char* name);

// For the calling thread, one that sleeps most of the time and for which others wait: once it is
// runnable, it soon runs, also where other threads keep all cores busy. It gets no larger share of
// them.
//
// Linux 6.12 and later grant an ordinary thread a time slice of its own (sched_setattr(2)), and one
// with a short slice goes before one with a long slice (EEVDF). No privilege is needed; an older
// kernel, or a container that forbids the call, changes nothing. Waits with a time limit end on
// time, too, not up to 50 us later (PR_SET_TIMERSLACK).
void wake_up_soon();

// For the calling thread, one that computes for long and calls yield_turn() all the while: from now
// on it has many short slices (as above). False where the kernel does not grant them, and then
// nothing has changed.
bool take_short_turns();

// Once a slice, for a thread that takes short turns: another one of the same control group that
// waits for this core runs now, and not only at the kernel's next tick, milliseconds later. Does
// nothing in any other thread: who yields gives up the rest of its slice, and may lose all of it
// (since "sched/fair: Forfeit vruntime on yield"), which would be a hundred times what it has used
// of a long one.
void yield_turn();

// The opposite of wake_up_soon(), for one that computes for long and for which nobody waits: where
// others want the cores, it gets about a third of what each of them gets (nice 5). It never stands
// still.
void leave_room_for_others();

}  // namespace tablestore
