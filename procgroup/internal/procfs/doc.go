// Package procfs reads what Linux tells about processes: the files below /proc, and the counters of
// TCP connections from sock_diag(7). It reads and parses, and decides nothing. On other systems it is
// empty.
//
// A [Reader] reads the files. Reading some of them has to wait for their process; [Gather] does so for
// many processes in bounded time.
package procfs
