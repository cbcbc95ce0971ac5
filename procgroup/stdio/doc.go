// Package stdio reads and writes files that other processes share, such as the standard streams.
//
//	out, log := stdio.New(os.Stdout), slog.New(slog.NewTextHandler(stdio.New(os.Stderr), nil))
//
// On Unix, all processes that have inherited a file share its flag O_NONBLOCK, which decides whether reads and writes
// block. Some programs change the flag: Node makes its standard streams non-blocking if they are pipes, and thereby
// also those of the shell that started it, of its siblings and of its children. In a Go program a write to a full pipe
// then returns the error "resource temporarily unavailable" and loses data, and a read of an empty pipe fails as well.
// A [File] waits instead.
//
// Package procgroup uses Files for an [os.File] that is cmd.Stdout, cmd.Stderr or cmd.Stdin, and packages mcpsdk and
// mcpgo use them for the standard streams of a server. A writer on top of os.Stdout, such as an [io.MultiWriter] or a
// [bufio.Writer], needs a File in place of os.Stdout, because it does not continue after an error.
//
// # Guarantees
//
//  1. A Write writes everything, and a Read waits for something to read, whether the file blocks or not, and however
//     often another process changes the flag meanwhile. The bytes of concurrent Writes of one File do not mix.
//  2. An error other than "resource temporarily unavailable" is returned at once, with the number of bytes that were
//     written before.
//  3. Close ends a wait, and does not wait itself. After Close, only a system call in progress can still write.
//  4. A File never changes the flag.
package stdio
