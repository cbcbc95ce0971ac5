package job

// A Piece is a part of a job's output.
type Piece struct {
	// Data is the output. The caller owns it.
	Data []byte
	// Dropped is the number of bytes between the reader's position and Data that are no longer kept.
	Dropped int64
	// Next is the position after Data, for the next call.
	Next int64
	// Last reports whether the job has ended and nothing follows.
	Last bool
}

// Read returns the output after the position from as the command has written it: at most limit bytes of it, or all
// that is kept if limit is 0 or less. It does not wait. A negative position means the beginning, and a position
// beyond the output means the end.
func (j *Job) Read(from int64, limit int) Piece {
	j.touch()
	return Piece(j.log.Read(from, limit))
}

// ReadText returns the output after the position from as a person would read it: what has changed, or has scrolled
// away, on the job's terminal or, without one, on a terminal of 24 lines of 80 characters since the output before
// from was written there; see [procgroup.Output.Text]. A display that is drawn again and again appears once, in its
// last state. Lines are not cut. The limit counts bytes that the command has written.
//
// A character or an escape sequence that is cut between two pieces belongs to the second. Text that is only
// continued appears once; a line that the next piece draws over appears in both. What stood on the screen is known
// from the last 16 KiB before from, as far as they are kept.
func (j *Job) ReadText(from int64, limit int) Piece {
	j.touch()
	return Piece(j.log.ReadText(from, limit))
}
