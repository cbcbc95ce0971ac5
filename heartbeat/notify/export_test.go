package notify

// SetSend replaces what sends messages, until undo is called.
func SetSend(f func(addr, text string) error) (undo func()) {
	before := send
	send = f
	return func() { send = before }
}
