// Package server defines a run of a server, and implements the runs that are processes: how a process is started,
// terminated and killed, and which error reports its end.
package server
