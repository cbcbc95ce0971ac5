// Package queues holds the few lines that put the jobs of River, asynq and Watermill under
// limits, as docs/scaling.md shows them. Copy them; the package itself is never released.
package queues
