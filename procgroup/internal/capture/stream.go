package capture

import (
	"sync"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/stackdump"
)

// A stream is an output stream of a command. Its output goes from the pipe to the record, the writer, the callback and
// the spill file.
//
// A goroutine, the collector, reads the stream. It waits for output, and then until the output is written, so that a
// slow writer slows the command down. Drain, Finish and EndStacks also read the stream, without waiting. The lock of
// the pipe makes each read and the passing on of its result one step, so that the output keeps its order.
type stream struct {
	id      int // 0 is stdout, or both in one; 1 is stderr
	pipe    *pipe
	sink    *sink         // nil if the caller has no writer
	written chan struct{} // receives a value from each sink that has handled the collector's chunk

	passing sync.Mutex         // held while output is passed on; guards divider
	divider *stackdump.Divider // nil except between BeginStacks and EndStacks

	// Guarded by Capture.mu.
	ended  bool  // no output follows
	hungUp bool  // hangUp has closed the stream before its end
	err    error // the first error of reading

	large bool // the pipe has been enlarged; used by the collector only

	// Guarded by Capture.newestMu.
	tail  []byte // the last bytes of the output
	total int64  // bytes of the output
}
