package procgroup

// An InputWait says that a command waits for input that does not come. The zero InputWait says
// that it is not known to wait.
//
// A command is examined while it prints nothing, if its standard input is a pipe, a socket or a terminal; a command
// with any other input never waits. A wait is noticed 0.6 to 0.9 s after the last output. A program that only
// listens, such as a server that also reads commands from its standard input, does not wait for input: something
// else could make it go on. If a process of the command may not be examined, for example because another user runs
// it, the command is not known to wait. With the containment [Group] it is not known to wait either, because the
// processes that leave the group are not known.
//
// Linux only, on amd64 and arm64. On other systems a command is not known to wait.
type InputWait struct {
	// Pid is the process that reads the input. It is 0 if the command is not known to wait.
	Pid int
	// Certain reports whether every process of the command waits, and only input or a signal, such as
	// that of an alarm, can end the wait. If it is false and Pid is not 0, the command probably waits:
	// the process Pid waits for input, the processes above and below it only wait, and the last line of
	// the output is not finished.
	Certain bool
	// Prompt is the line in which the cursor stands, up to the cursor, as a person would read it:
	// the unfinished last line of the output, unless it was drawn in another order. It has at most
	// 160 characters, and is "" if nothing stands before the cursor.
	Prompt string
	// Secret reports whether the input is a terminal that does not echo what is typed, as for a
	// password.
	Secret bool
}

// String returns "waits for input: " with the prompt, "probably waits for input: " with the prompt
// if that is not certain, or "" for the zero InputWait.
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

// Input says what is done about a command that asks for input. It is an [Option]. With the zero Input the
// environment stays as it is, a wait is noticed and reported, and the command waits until one of its limits has
// expired. Where the system does not show what a command waits for, Stop and Notify have no effect; see
// [InputWait].
type Input struct {
	// Unattended sets environment variables that keep common programs from asking questions and from starting an
	// editor or a pager. A variable that is already set, in cmd.Env or, if cmd.Env is nil, in this process, keeps
	// its value. The page of the package lists them. Also leave cmd.Stdin nil: a command that reads its standard
	// input then finds no input.
	Unattended bool
	// Stop stops the command when it certainly waits for input, as a limit would. The error matches the Reason
	// [WaitingForInput], and the exit code is 124.
	Stop bool
	// Notify is called when the command begins to wait for input, when what is known about the wait changes, and,
	// with the zero [InputWait], when the command has gone on; if Notify is nil, nothing is called. The calls are
	// made one at a time, on a separate goroutine; none begins after Wait has returned. Nothing waits for the
	// function, which may call the methods of the Process: a function that blocks delays only its next call, which
	// then says what is known by then, and keeps a goroutine until it returns. A function that panics or calls
	// [runtime.Goexit] aborts the command, and the error wraps a [*timeout.PanicError] or [timeout.ErrGoexit].
	Notify func(InputWait)
}
