// Package transcript keeps the newest output of a job, lets any number of readers follow it, and decides when a wait
// for an event of the job is over. It does not deal with processes.
//
// A position in the output is the number of bytes before it. Each reader keeps its own position; a Log keeps no state
// for readers.
package transcript
