package procgroup

// defaultTail is how many bytes are kept of the end, unless a Capture says otherwise.
const defaultTail = 1 << 20

// Capture says what is kept of the output of a command, and what else it is passed to. It is an [Option]. The zero
// Capture keeps the last MiB of each stream.
//
// Sizes are in bytes and count for each stream and for both streams together. If a size other than Tail is
// negative, Start returns a [*timeout.ConfigError].
type Capture struct {
	// Head is how much of the beginning is kept, in addition to the Tail; 0 means nothing. The first lines often say with
	// which arguments a command was called, or which error was the first. [Output.Text] cuts both parts at line ends, and
	// says how much is left out between them.
	Head int
	// Tail is how much of the end is kept; 0 means 1 MiB, [math.MaxInt] everything, and a negative value nothing. The
	// number of dropped bytes is exact. Memory is used as output arrives, not in advance. Output that is not kept is
	// still a heartbeat, counted and passed on.
	Tail int
	// Limit stops the command, as a limit of time would, when it has written more than this to stdout and stderr
	// together; 0 means no limit. The error matches the Reason [TooMuchOutput], and the exit code is 153, like that
	// of a program that SIGXFSZ ends under ulimit -f. Limit is for useless output, such as that of the program yes:
	// Head and Tail bound memory without it. A command that has ended by itself before its output was read is not
	// stopped.
	Limit int64
	// OnePipe gives the command a single pipe for stdout and stderr, as 2>&1 does in a shell. [Result.Combined] then has
	// the output in the order of writing. With two pipes it has the order of reading, in which pieces that were written to
	// both streams within a short time may change places. With a single pipe all output counts as stdout: in the Result,
	// in cmd.Stdout and in the chunks. There is a single pipe without OnePipe, too, if cmd.Stdout and cmd.Stderr are the
	// same writer and its type is comparable. If cmd.Stderr is set and differs from cmd.Stdout, Start returns a
	// [*timeout.ConfigError].
	OnePipe bool
	// Spill is a directory in which all of the output, as it came and in the order of Combined, is written to a new
	// file that only the user of this program can read; nil means no file. [Result.Spill] says where it is. It is
	// made when there is output, can be read while the command is running, and stays until [SpillDir.Remove] or
	// [SpillDir.Close] removes it. A slow disk slows the command down, as a slow cmd.Stdout does. If the file
	// cannot be written, or is full, the command goes on without it, and the error is in [Spill.Err] alone.
	Spill *SpillDir
	// SpillMax is how many bytes go to the file, the first ones; 0 means that only the bound of the directory
	// applies.
	SpillMax int64
	// Each is called with the output as it arrives; if Each is nil, nothing is called. The calls are made one at a
	// time, on a separate goroutine; none begins after Wait has returned. A slow function delays neither the
	// command nor its end: up to 1 MiB waits for it; if more arrives, the waiting output is skipped, and the next
	// [Chunk] counts it. After the command has ended, the function gets output for at most a second;
	// [Result.Skipped] counts the bytes that it did not get. If every byte is needed, set cmd.Stdout and cmd.Stderr
	// instead: a slow writer slows the command down. A function that panics or calls [runtime.Goexit] aborts the
	// command, and the error wraps a [*timeout.PanicError] or [timeout.ErrGoexit].
	Each func(Chunk)
}

// check returns an error for a negative size.
func (c *Capture) check() error {
	for _, size := range []struct {
		key   string
		bytes int64
	}{{"Head", int64(c.Head)}, {"Limit", c.Limit}, {"SpillMax", c.SpillMax}} {
		if err := refuseNegative("Capture."+size.key, size.bytes); err != nil {
			return err
		}
	}
	return nil
}

// tail returns how many bytes of the end are kept.
func (c *Capture) tail() int {
	if c.Tail == 0 {
		return defaultTail
	}
	return max(c.Tail, 0)
}
