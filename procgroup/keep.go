package procgroup

import "cmp"

// defaultTail is the number of bytes of the end that are kept if Capture.Tail is 0.
const defaultTail = 1 << 20

// Capture selects how much of the output of a command is kept, and who else gets the output. It is an [Option]. The
// zero Capture keeps the last MiB of each stream, and the last MiB of both together.
//
// Head and Tail are in bytes, and apply to each stream and to both streams together. If a size other than Tail is
// negative, Start returns a [*timeout.ConfigError].
type Capture struct {
	// Head is the number of bytes of the beginning that are kept, in addition to the Tail. The first lines often show
	// the arguments of a command, or its first error. If bytes between Head and Tail are left out, [Output.Text] cuts
	// both at line ends, and puts a line between them that says how much is left out.
	Head int
	// Tail is the number of bytes of the end that are kept; 0 means 1 MiB, [math.MaxInt] everything, and a negative
	// value nothing. Memory is used as output arrives, not in advance. Output that is not kept is still a heartbeat,
	// counted and passed on.
	Tail int
	// Limit is the number of bytes that the command may write to stdout and stderr together; 0 means no limit. A
	// command that writes more is stopped as by a time limit. The error matches the Reason [TooMuchOutput], and the
	// exit code is 153, like that of a program that SIGXFSZ kills under ulimit -f. Limit stops useless output, such as
	// that of the program yes; Head and Tail bound memory without it. A command that has ended by itself before its
	// output was read is not stopped.
	Limit int64
	// OnePipe gives the command a single pipe for stdout and stderr, as 2>&1 does in a shell. [Result.Combined] is then
	// in the order of writing. With two pipes it is in the order of reading, in which pieces that were written to both
	// streams within a short time may change places. With a single pipe all output counts as stdout: in the [Result],
	// in cmd.Stdout and in each [Chunk]. Even without OnePipe there is a single pipe if cmd.Stdout and cmd.Stderr are
	// the same writer and its type is comparable. If OnePipe is set, and cmd.Stderr is neither nil nor cmd.Stdout,
	// Start returns a [*timeout.ConfigError].
	OnePipe bool
	// Spill is a directory in which all of the output is written to a new file, unchanged and in the order of reading.
	// nil means no file. Only the user of this program can read the file. [Result.Spill] contains its path. The file is
	// created when there is output, can be read while the command is running, and stays until [SpillDir.Remove] or
	// [SpillDir.Close] removes it. A slow disk slows the command down, as a slow cmd.Stdout does. If the file cannot be
	// written, or is full, the command goes on without it, and only [Spill.Err] has the error.
	Spill *SpillDir
	// SpillMax is the maximum size in bytes of the file in Spill, which contains the first bytes of longer output; 0
	// means that only the bound of the [SpillDir] applies.
	SpillMax int64
	// Each is called with the output as it arrives, unless it is nil. The calls are made one at a time, on a separate
	// goroutine; none begins after Wait has returned. A slow function delays neither the command nor its end: up to 1
	// MiB waits for it; if more arrives, the waiting output is skipped, and the next [Chunk] counts it. After the
	// command has ended, the function gets output for at most a second; [Result.Skipped] counts the bytes that it did
	// not get. If every byte is needed, set cmd.Stdout and cmd.Stderr instead: a slow writer slows the command down. A
	// function that panics or calls [runtime.Goexit] aborts the command, and the error wraps a [*timeout.PanicError] or
	// [timeout.ErrGoexit].
	Each func(Chunk)
}

// check returns a [*timeout.ConfigError] for a negative size other than Tail.
func (c *Capture) check() error {
	return cmp.Or(refuseNegative("Capture.Head", int64(c.Head)), refuseNegative("Capture.Limit", c.Limit),
		refuseNegative("Capture.SpillMax", c.SpillMax))
}
