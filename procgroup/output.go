package procgroup

import "github.com/tooldeadline/tooldeadline/procgroup/internal/kept"

// A Chunk is a piece of a command's output; see [Capture]. It may begin and end anywhere,
// even within a character.
type Chunk struct {
	// Stderr reports whether the chunk is from stderr. If both streams share a pipe (see
	// [Capture]) or a terminal, all data counts as stdout, and stderr has a single chunk, the last one,
	// without data.
	Stderr bool
	// Data is valid only until the callback returns. It is empty in a chunk that only reports
	// the end of the stream.
	Data []byte
	// Skipped is the number of bytes of the stream that were skipped before Data because the
	// callback was too slow.
	Skipped int64
	// Last reports whether the stream has ended with this chunk.
	Last bool
}

// An Output is the output of a stream: its last bytes, its first bytes (see [Capture]), and how
// many bytes there were. It is safe for concurrent use.
type Output struct {
	Total   int64 // bytes written
	Dropped int64 // bytes not kept; always Total - len(Bytes())

	kept kept.Output
}

func newOutput(k kept.Output) Output {
	return Output{Total: k.Total, Dropped: k.Dropped, kept: k}
}

// Bytes returns the kept bytes, those of the beginning first. The caller must not modify them.
func (o Output) Bytes() []byte { return o.kept.Bytes() }

// String returns the kept bytes as text. It omits a character at the beginning that the limit has
// cut, and a character at the end that the command had not finished writing when it was stopped.
// Other invalid UTF-8 is returned unchanged.
//
// If a Head is kept and bytes were dropped, String cuts the beginning and the end at line ends, and
// puts a line that counts what is left out between them, as Text does.
func (o Output) String() string { return o.kept.String() }

// Text returns the output as a person would have read it, for a reader such as a model: the lines that have scrolled
// away, and then what stands on the terminal of [Terminal] or, without one, on a terminal of 24 lines of 80
// characters, once the output has been written there.
//
//   - Cursor movement, erasing, scroll regions and the other sequences that programs use to draw are applied, so a
//     progress bar, or a display of several lines that is drawn again and again, is there once. Colours and other
//     sequences are dropped, and so are control characters other than tab and newline.
//   - What stands on the alternate screen, where editors and pagers draw, is gone once it is left.
//   - A line that is longer than the terminal is wide is one line. Without a terminal a carriage return goes back to
//     its beginning.
//   - Blanks at the end of a line are kept if it was written once, and dropped if it was drawn over.
//   - Each byte that is not valid UTF-8 becomes U+FFFD.
//   - A line of more than 2000 characters keeps its first and last 1000, with the number of characters left out.
//   - If bytes were dropped, a line such as "[12 lines, 3456 bytes left out]" stands where they were, without the
//     number of lines if there is no beginning (see [Capture]). The kept output is cut there at a line end, if there
//     is one, and otherwise between two characters. The line counts what that cut removed, too, so its number may be
//     larger than Dropped.
func (o Output) Text() string { return o.kept.Text() }
