// Package server has the runs of a server, and those that are processes: how one starts, how it is asked to end and then
// killed, and what is said of its end.
package server
