package request

// Waiting is how many requests wait for progress at the moment.
func (c *Limiter) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}
