// Package simulate is a machine of virtual processes and pipes, on which package procgroup runs unchanged in the
// simulated time of testing/synctest. Only tests import it.
//
// A command is a [Script], which is data: so a generator can make it, a failing run can be shrunk and kept in a file,
// and a reader sees at once what the command did. Its processes write, sleep, fork, leave their group, handle and
// ignore signals, stop themselves, cannot be killed for a while, and hold and close their pipes. A [Machine] also
// makes looks at processes slow, or lets them never return.
//
// What it does not pretend: control groups and their limits, /proc, terminals, reused process ids, the time that a
// processor takes, and that a process is slow because others are fast. Those are asked of real machines.
//
// A machine's lock is held for an instant only, and whatever waits, waits on channels: time stands still in a bubble
// while a goroutine waits for a mutex.
package simulate
