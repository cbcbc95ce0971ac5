// Package terminal opens a terminal for a command, and types input there so that the command reads it unchanged.
package terminal

import "fmt"

// A Size is the size of a terminal, in characters.
type Size struct{ Rows, Cols uint16 }

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Rows, s.Cols) }
