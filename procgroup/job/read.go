package job

// A Piece is a part of a job's output.
type Piece struct {
	// Data is the output. The caller owns it.
	Data []byte
	// Dropped is the number of bytes between the reader's position and Data that are no longer kept.
	Dropped int64
	// Next is the position after Data, for the next call.
	Next int64
	// Last reports that the job has ended and that nothing follows.
	Last bool
}

// Read returns the output after the position from as the command has written it: at most limit bytes
// of it, or all that is kept if limit is 0 or less. It does not wait. A negative position means the
// beginning, and one beyond the output means its end.
func (j *Job) Read(from int64, limit int) Piece {
	j.touch()
	return Piece(j.log.Read(from, limit))
}

// ReadText returns the output after the position from as a person would read it: without escape
// sequences and control characters other than tabs, without what a carriage return or a backspace
// takes back, and with U+FFFD for invalid UTF-8. A progress bar is one line. The limit counts bytes
// that the command has written; the text usually has fewer, and more only because of U+FFFD.
//
// A character or an escape sequence that is cut between two pieces belongs to the second. A line
// that was cut is not taken back by the next piece.
func (j *Job) ReadText(from int64, limit int) Piece {
	j.touch()
	return Piece(j.log.ReadText(from, limit))
}
