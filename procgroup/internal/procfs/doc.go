// Package procfs reads what Linux shows about processes: the files in /proc, and the counters of TCP connections from
// sock_diag(7). On other systems it is empty.
//
// A [Reader] reads the files. Some reads block until the process that they are about gets a processor; [Gather] reads
// from many processes in bounded time.
package procfs
