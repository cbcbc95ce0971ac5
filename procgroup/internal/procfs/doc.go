// Package procfs reads what Linux tells about processes: the files below /proc, and the counters of
// TCP connections from sock_diag(7). It reads and parses, and decides nothing. On other systems it is
// empty.
//
// A [Reader] reads the files that are there at once. Some files have to wait for their process, and
// [Gather] is how to read those of many processes in bounded time.
package procfs
