package mcpsdk

// stackFrame is the size of the stack, in bytes, that the SDK needs below a middleware: it decodes and checks the
// arguments of a call with reflection and schemas.
const stackFrame = 12 << 10

// growStack grows the stack of a call's goroutine in one step to the size that the call needs. A new goroutine has
// 2 KiB, and would otherwise copy its stack four times, each time with more frames. That would take more than half of
// the time that Install adds to a call (BenchmarkOverhead).
//
//go:noinline
func growStack() byte {
	var frame [stackFrame]byte
	return touch(&frame)
}

//go:noinline
func touch(frame *[stackFrame]byte) byte { return frame[stackFrame/2] }
