package waits

// A waitCall is a kind of system call that may wait. The kind determines which arguments say what the call waits for.
type waitCall uint8

const (
	callRead waitCall = iota + 1
	callWrite
	callPoll
	callPpoll
	callSelect
	callEpoll
	callEpoll2
	callFutex
	callChild
	callSignal
	callSignalWait
	callSleep
)
