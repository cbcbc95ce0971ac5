package texts

// Wrap returns an error that wraps err. Its message is text, a colon and the message of err. Unlike fmt.Errorf, Wrap
// does not call err.Error, which may block, and Error of the result calls it only for a bounded time.
func Wrap(text string, err error) error { return &wrapped{text, err} }

type wrapped struct {
	text string
	err  error
}

func (w *wrapped) Error() string { return w.text + ": " + Of(w.err) }

func (w *wrapped) Unwrap() error { return w.err }
