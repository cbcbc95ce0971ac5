package procgroup

// An InputWait describes a command that waits for input that does not come. The zero InputWait means that the command
// is not known to wait.
//
// A command is examined while it prints nothing, if its standard input is a pipe, a socket or a terminal. With any
// other standard input it is not known to wait. A wait is noticed 0.6 to 0.9 s after the last output, or later if the
// examination is slow, as on a busy machine. A server that listens for connections and also reads its standard input
// does not count as waiting, because a connection can make it go on. If this program may not examine a process of the
// command, for example because another user runs it, the command is not known to wait. With the containment [Group] it
// is not known to wait either, because processes that have left the group cannot be examined.
//
// Linux only, on amd64 and arm64. On other systems a command is not known to wait.
type InputWait struct {
	// Pid is the id of the process that reads the input. It is 0 if the command is not known to wait.
	Pid int
	// Certain reports whether every process of the command waits, and only input or a signal, such as that of an alarm,
	// can end the wait. If it is false and Pid is not 0, the command probably waits: the process Pid waits for input,
	// its ancestors and descendants only wait, and the last line of the output is not finished.
	Certain bool
	// Prompt is the text before the cursor, in the line of the cursor, as a person would read it. That is the
	// unfinished last line of the output, unless the command has moved the cursor. A longer text is cut to its last 160
	// characters. Prompt is "" if the cursor is at the beginning of a line, or after blanks only.
	Prompt string
	// Secret reports whether the input is a terminal that does not echo what is typed, as for a password.
	Secret bool
}

// String returns "waits for input", or "probably waits for input" if the wait is not certain, followed by ": " and the
// prompt, if there is a prompt. It returns "" for the zero InputWait.
func (w InputWait) String() string {
	if w.Pid == 0 {
		return ""
	}
	text := "waits for input"
	if !w.Certain {
		text = "probably waits for input"
	}
	if w.Prompt != "" {
		text += ": " + w.Prompt
	}
	return text
}

// Input selects what happens when a command asks for input. It is an [Option]. With the zero Input the environment
// stays unchanged, [Process.Input] and [Result.Input] report a wait, and the command waits until it gets input or one
// of its limits expires. On systems where a command is never known to wait, Stop and Notify have no effect; see
// [InputWait].
type Input struct {
	// Unattended sets environment variables that keep common programs from asking questions and from starting an editor
	// or a pager. A variable that is already set, in cmd.Env or, if cmd.Env is nil, in this process, keeps its value.
	// The package documentation lists the variables. Also leave cmd.Stdin nil, so that a command that reads its
	// standard input finds the end of the input at once.
	Unattended bool
	// Stop stops the command, as a limit does, when it certainly waits for input. The error matches the Reason
	// [WaitingForInput], and the exit code is 124.
	Stop bool
	// Notify, unless it is nil, is called when the command begins to wait for input, when the InputWait changes, and,
	// with the zero [InputWait], when the command has gone on. The calls are made one at a time, on a separate
	// goroutine; none begins after Wait has returned. The function may call the methods of the Process. A function that
	// blocks delays only its later calls, which omit each InputWait that a newer one has replaced meanwhile, and keeps
	// a goroutine until it returns. A function that panics or calls [runtime.Goexit] aborts the command, and the error
	// wraps a [*timeout.PanicError] or [timeout.ErrGoexit].
	Notify func(InputWait)
}
