//go:build unix && !linux

package main

import "syscall"

const maxSignal = 32

// realTimeMin and realTimeMax are 0: these systems have no common range of real-time signals.
const realTimeMin, realTimeMax syscall.Signal = 0, 0

var (
	aliases   = map[string]string{"IOT": "ABRT"}
	preferred map[string]string
)
