package main

import "syscall"

const maxSignal = 64

// realTimeMin and realTimeMax bound the real-time signals, without the two that the C library uses itself.
const realTimeMin, realTimeMax syscall.Signal = 34, maxSignal

// aliases has other names for signals, and preferred has the names that are printed instead of those
// of package unix.
var (
	aliases   = map[string]string{"CLD": "CHLD", "POLL": "IO", "IOT": "ABRT"}
	preferred = map[string]string{"IO": "POLL"}
)
