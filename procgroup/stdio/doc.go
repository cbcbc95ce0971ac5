// Package stdio reads and writes files that other processes share, such as the standard streams.
//
//	out, log := stdio.New(os.Stdout), slog.New(slog.NewTextHandler(stdio.New(os.Stderr), nil))
//
// On Unix, whether a file blocks is a property (O_NONBLOCK) that all processes share that have inherited it. Some
// programs change it: Node makes its standard streams non-blocking if they are pipes, and with them those of the shell
// that started it, of its neighbours and of its children. A Go program then gets "resource temporarily unavailable" as
// the error of a write to a full pipe, and what it wanted to write is lost; the same happens to a read of an empty one.
// A [File] waits instead.
//
// Package procgroup does so for an [os.File] that is cmd.Stdout, cmd.Stderr or cmd.Stdin, and mcpsdk and mcpgo for the
// standard streams of a server. A writer of one's own that writes to os.Stdout, such as an [io.MultiWriter] or a
// [bufio.Writer], has to be given a File: neither can go on after an error.
//
// # Guarantees
//
//  1. A Write writes everything, and a Read waits for something to read, whether the file blocks or not, and however
//     often another process changes that meanwhile. Writes of one File do not mix.
//  2. Errors that are final are returned at once, with the number of bytes that were written before.
//  3. Close ends a wait and waits for nothing itself. Nothing is written after it but by a system call in progress.
//  4. The property is never changed.
package stdio
