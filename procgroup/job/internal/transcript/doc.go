// Package transcript keeps what a job has written, lets any number of readers follow it, and decides
// when a wait for it is over. It knows no process.
//
// A position is the number of bytes that were written before it. Nothing is kept for a reader: a
// position is all that a reader has.
package transcript
