// Package terminal compares the text of output, as package procgroup has it, with what a terminal emulator
// that we did not write shows of the same bytes. It is a module of its own, never released, because the
// emulator needs more than the root module may.
package terminal
