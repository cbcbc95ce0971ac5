// Package terminal makes the terminal of a command, and types on it what arrives there as it is.
package terminal

import "fmt"

// A Size is the size of a terminal, in characters.
type Size struct{ Rows, Cols uint16 }

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Rows, s.Cols) }
