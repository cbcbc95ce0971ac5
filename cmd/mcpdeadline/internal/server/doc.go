// Package server has the runs of a server, and those that are processes: how one starts, how it is asked to end and then
// killed, and which text reports its end.
package server
