// Package screen renders the output of a command as a person would have read it: the text that stands on a terminal
// after the output has been written there, and the text that has scrolled away.
//
//	text := screen.Text(output, screen.Config{})
//
// It supports what programs use to draw: cursor movement, erasing, scroll regions, the alternate screen, tabs, wide
// characters and combining marks. It ignores colours. It takes time in proportion to the output, and memory in
// proportion to the size of the terminal and to the text.
package screen
