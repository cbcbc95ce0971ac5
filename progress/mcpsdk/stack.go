package mcpsdk

// stackFrame is what the SDK needs below a middleware: decoding and checking the arguments of
// a call goes through reflection and schemas.
const stackFrame = 12 << 10

// growStack grows the stack of a call's goroutine at once to the size that the call needs. The stack of a new
// goroutine has 2 KiB. It would otherwise grow, and be copied, four times in a row, each time with more frames
// to adjust: more than half of what a call under Install costs (BenchmarkOverhead).
//
//go:noinline
func growStack() byte {
	var frame [stackFrame]byte
	return touch(&frame)
}

//go:noinline
func touch(frame *[stackFrame]byte) byte { return frame[stackFrame/2] }
