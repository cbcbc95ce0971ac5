package procgroup

import "time"

// Programs have more time to write their stacks, and lists of processes to be made, so that no test depends on how fast the
// machine is: what is waited for ends when it is complete. What the real times bound is proved in simulated time.
func init() { stacksTime, viewTime = time.Minute, time.Minute }
