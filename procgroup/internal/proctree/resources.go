package proctree

import "fmt"

// Limits are the most that a tree may use. A field of 0 is no limit.
type Limits struct {
	Memory    int64   // bytes
	Processes int64   // and threads
	CPU       float64 // processors
	// BestEffort has a tree start without the limits that cannot be had.
	BestEffort bool
}

// refused is the error for limits that cannot be had.
func refused(why error) error { return fmt.Errorf("procgroup: Resources: %w", why) }

func (l Limits) any() bool { return l.Memory > 0 || l.Processes > 0 || l.CPU > 0 }
