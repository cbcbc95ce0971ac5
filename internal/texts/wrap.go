package texts

// Wrap returns an error that wraps err, with a text before that of err. fmt.Errorf would ask err for its text at once, and wait
// for as long as its method takes.
func Wrap(text string, err error) error { return &wrapped{text, err} }

type wrapped struct {
	text string
	err  error
}

func (w *wrapped) Error() string { return w.text + ": " + Of(w.err) }

func (w *wrapped) Unwrap() error { return w.err }
