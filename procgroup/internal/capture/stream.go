package capture

import (
	"sync"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/stackdump"
)

// A stream is an output stream of a command. Its output goes from the pipe to the record, the writer
// and the callback.
//
// The stream is read by its collector, which waits for output and then for the writer, so that
// a slow writer slows the command down. Once the command has ended, Drain and Finish also read
// it, without waiting. The pipe allows only one of them at a time to read and to pass the output
// on.
type stream struct {
	id      int
	pipe    *pipe
	sink    *sink         // nil if the caller has no writer
	written chan struct{} // gets a value when a sink has written the collector's chunk

	passing sync.Mutex         // held while output is passed on; guards divider
	divider *stackdump.Divider // nil unless stacks may come

	// Guarded by Capture.mu.
	tail   []byte // the last bytes, independent of what the record keeps
	ended  bool   // no output follows
	hungUp bool   // it ended because hangUp closed it
	err    error  // of reading

	large bool // the pipe has been enlarged; used by the collector only

	newest []byte // the last bytes; guarded by Capture.lineMu
}
