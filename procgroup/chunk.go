package procgroup

import "strconv"

// A Stream is one of a command's output streams.
type Stream int

const (
	Stdout Stream = iota
	Stderr
)

// String gives "stdout" or "stderr".
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
	Stream Stream
	// Data is valid only during the call. It is empty where only Last is news.
	Data []byte
	// Skipped is how many bytes of the stream, before Data, the callback did not get
	// because it was too slow.
	Skipped int64
	// Last says that the stream has ended and that this is its last chunk.
	Last bool
}
