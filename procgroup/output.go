package procgroup

import (
	"strconv"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
)

// A Stream is one of a command's output streams.
type Stream int

const (
	Stdout Stream = iota
	Stderr
)

// String returns "stdout" or "stderr".
func (s Stream) String() string {
	switch s {
	case Stdout:
		return "stdout"
	case Stderr:
		return "stderr"
	}
	return "Stream(" + strconv.Itoa(int(s)) + ")"
}

// A Chunk is a piece of output, see [WithOutput]. Where it begins and ends is chance.
type Chunk struct {
	// Stream is Stdout for all data where both streams have one pipe, see [WithOnePipe].
	// Stderr then has one chunk, the last, without data.
	Stream Stream
	// Data is valid only during the call. It is empty where only Last is news.
	Data []byte
	// Skipped is how many bytes of the stream, before Data, the callback did not get
	// because it was too slow.
	Skipped int64
	// Last says that the stream has ended and that this is its last chunk.
	Last bool
}

// An Output is what a stream brought: its last bytes, and how many there were. It is
// safe for concurrent use.
type Output struct {
	Total   int64 // bytes written
	Dropped int64 // bytes not kept; always Total - len(Bytes())

	kept capture.Kept
}

func newOutput(k capture.Kept) Output { return Output{Total: k.Total, Dropped: k.Dropped, kept: k} }

// Bytes returns the bytes that were kept. They must not be changed.
func (o Output) Bytes() []byte { return o.kept.Bytes() }

// String returns the bytes that were kept as text. A character that lost its beginning
// to the limit, or its end because the command was stopped while writing it, is left
// out. What is not UTF-8 for any other reason is as it came.
func (o Output) String() string { return o.kept.String() }
