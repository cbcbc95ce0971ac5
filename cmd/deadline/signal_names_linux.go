package main

import "syscall"

const maxSignal = 64

// realTimeMin and realTimeMax are the first and the last real-time signal, without the two that the C library reserves.
const realTimeMin, realTimeMax syscall.Signal = 34, maxSignal

// aliases maps other names of signals to the names of package unix. preferred maps names of package unix to the names
// that are printed.
var (
	aliases   = map[string]string{"CLD": "CHLD", "POLL": "IO", "IOT": "ABRT"}
	preferred = map[string]string{"IO": "POLL"}
)
