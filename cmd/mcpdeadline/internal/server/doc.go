// Package server defines the runs of a server, and implements the runs that are processes: how a process starts, how it
// is asked to end and then killed, and which text reports its end.
package server
