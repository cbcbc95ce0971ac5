// Package screen says what a person would have read of the output of a command: what stands on a terminal,
// and what has scrolled away above it, once the output has been written there.
//
//	text := screen.Text(output, screen.Config{})
//
// It knows what programs use to draw: cursor movement, erasing, scroll regions, the alternate screen, tabs,
// wide characters and combining marks. It has neither colours nor keys. It takes time in proportion to the
// output, and memory in proportion to the size of the terminal and to the text.
package screen
