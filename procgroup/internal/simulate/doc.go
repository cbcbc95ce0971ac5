// Package simulate provides a machine of virtual processes and pipes, on which package procgroup, the program under
// test, runs unchanged in the simulated time of testing/synctest. Only tests import it.
//
// A command is a [Script]. Scripts are data, so that a generator can make them, a failing run can be reduced and kept
// in a file, and a reader sees what the command did. Its processes write, sleep, fork, leave their group, handle and
// ignore signals, stop themselves, cannot be killed for a while, and hold and close their pipes. A [Machine] can also
// make the program's queries about processes slow, or never answer them.
//
// The package does not simulate control groups and their limits, /proc, terminals, reused process ids, the processor
// time that code takes, and the competition of processes for processors. Other tests cover these on real machines.
//
// A machine's lock is never held while a goroutine waits, and goroutines wait on channels: in a bubble of
// testing/synctest, time does not advance while a goroutine waits for a mutex.
package simulate
