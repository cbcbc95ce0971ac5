package procgroup

import "github.com/tooldeadline/tooldeadline/procgroup/internal/capture"

// A Chunk is a piece of a command's output; see [WithOutput]. It may begin and end anywhere,
// even within a character.
type Chunk struct {
	// Stderr reports that the chunk is from stderr. If both streams share a pipe (see
	// [WithOnePipe]), all data counts as stdout, and stderr has a single chunk, the last one,
	// without data.
	Stderr bool
	// Data is valid only until the callback returns. It is empty in a chunk that only reports
	// the end of the stream.
	Data []byte
	// Skipped is the number of bytes of the stream that were skipped before Data because the
	// callback was too slow.
	Skipped int64
	// Last reports that the stream has ended with this chunk.
	Last bool
}

// An Output is the output of a stream: its last bytes, and how many bytes there were. It is
// safe for concurrent use.
type Output struct {
	Total   int64 // bytes written
	Dropped int64 // bytes not kept; always Total - len(Bytes())

	kept capture.Kept
}

func newOutput(k capture.Kept) Output { return Output{Total: k.Total, Dropped: k.Dropped, kept: k} }

// Bytes returns the bytes that were kept. The caller must not modify them.
func (o Output) Bytes() []byte { return o.kept.Bytes() }

// String returns the bytes that were kept as text. It omits a character at the beginning that
// the limit has cut, and a character at the end that the command had not finished writing
// when it was stopped. Other invalid UTF-8 is returned unchanged.
func (o Output) String() string { return o.kept.String() }
