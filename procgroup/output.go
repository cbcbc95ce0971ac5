package procgroup

import "github.com/tooldeadline/tooldeadline/procgroup/internal/kept"

// A Chunk is a piece of a command's output; see [Capture]. It may begin and end anywhere, even within a character.
type Chunk struct {
	// Stderr reports whether the chunk is from stderr. If both streams share a pipe (see [Capture]) or a terminal, all
	// data counts as stdout, and stderr has a single chunk without data, whose Last is set.
	Stderr bool
	// Data is valid only until the Each of [Capture] returns. It is empty in a chunk that only reports skipped bytes or
	// the end of the stream.
	Data []byte
	// Skipped is the number of bytes of the stream that were skipped before Data because the Each of [Capture] was too
	// slow.
	Skipped int64
	// Last reports whether the stream has ended with this chunk.
	Last bool
}

// An Output contains the output of a stream, or of both: the number of bytes, the last bytes, and the first bytes if
// [Capture] has a Head. It is safe for concurrent use.
type Output struct {
	Total   int64 // number of bytes that were read from the command
	Dropped int64 // number of bytes that were not kept: Total - len(Bytes())

	kept kept.Output
}

func newOutput(k kept.Output) Output {
	return Output{Total: k.Total, Dropped: k.Dropped, kept: k}
}

// Bytes returns the kept bytes: the first bytes of the output, if a Head is kept, and then the last. The caller must
// not modify them.
func (o Output) Bytes() []byte { return o.kept.Bytes() }

// String returns the kept bytes as text. It omits an incomplete character at the beginning, if bytes before it were
// dropped, and at the end, if the command was stopped or the stream was closed before the rest was written. Other
// invalid UTF-8 is returned unchanged.
//
// If a Head is kept and bytes were dropped, String cuts the beginning and the end at line ends, and puts a line between
// them that counts the bytes that are left out, as Text does.
func (o Output) String() string { return o.kept.String() }

// Text returns the output as a person would have read it, for a reader such as a model: the lines that have scrolled
// away, and then the content of the screen after all output has been written. The screen is the terminal of [Terminal]
// or, without a Terminal, has 24 lines of 80 characters.
//
//   - Cursor movement, erasing, scroll regions and the other sequences that programs use to draw are applied, so a
//     progress bar, or a display of several lines that is drawn again and again, appears once. Colours and other
//     sequences are dropped, and so are control characters other than tab and newline.
//   - The content of the alternate screen, where editors and pagers draw, is dropped when a program leaves it.
//   - A line that is longer than the terminal is wide remains one line. Without a terminal a carriage return goes back
//     to its beginning.
//   - Blanks at the end of a line are kept if it was written once, and dropped if it was drawn over.
//   - Each byte that is not valid UTF-8 becomes U+FFFD.
//   - A line of more than 2000 characters keeps its first and last 1000, with the number of characters left out.
//   - If bytes were dropped, a line such as "[12 lines, 3456 bytes left out]" takes their place; it lacks the number of
//     lines if no Head is kept, or if no line end is left out. The kept output is cut there at a line end, if there is
//     one, and otherwise between two characters. The line also counts the bytes that this cut removes, so its number
//     may be larger than Dropped.
func (o Output) Text() string { return o.kept.Text() }
