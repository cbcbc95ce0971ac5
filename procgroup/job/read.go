package job

// A Piece is a part of a job's output.
type Piece struct {
	// Data is the output. The caller owns it.
	Data []byte
	// Dropped is the number of bytes between the reader's position and Data that are no longer kept.
	Dropped int64
	// Next is the position in the output after the part that Data shows, for the next call.
	Next int64
	// Last reports whether the job has ended and no output follows.
	Last bool
}

// Read returns the output after the position from as the command has written it: at most limit bytes, or all kept
// output if limit is 0 or less. It does not wait for output. A negative position means the beginning, and a position
// beyond the output means the end.
func (j *Job) Read(from int64, limit int) Piece {
	j.touch()
	return Piece(j.log.Read(from, limit))
}

// ReadText returns the output after the position from as a person would read it: the lines of the job's terminal that
// the output has changed, including lines that have scrolled away. A job without a [procgroup.Terminal] counts as
// having a terminal of 24 lines of 80 characters; see [procgroup.Output.Text]. A display that is drawn again and again
// appears once, in its last state. Lines are not cut. from and limit are as for [Job.Read]: limit counts bytes that the
// command has written, and 0 or less means no limit.
//
// A character or an escape sequence that is cut between two pieces belongs to the second. If the next piece only
// continues a line, that piece contains only the new text; if it draws over a line, both pieces contain the line. To
// reconstruct the screen at from, ReadText uses the last 16 KiB before from, as far as they are kept.
func (j *Job) ReadText(from int64, limit int) Piece {
	j.touch()
	return Piece(j.log.ReadText(from, limit))
}
