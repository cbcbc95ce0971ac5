package procgroup

// WithoutGroupSignal makes this process do without what Linux has since 6.9.
func WithoutGroupSignal() { noGroupSignal.Store(true) }
