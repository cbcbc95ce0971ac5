//go:build unix && !linux

package main

import "syscall"

const maxSignal = 32

// These systems have no common range of real-time signals.
const realTimeMin, realTimeMax syscall.Signal = 0, 0

var (
	aliases   = map[string]string{"IOT": "ABRT"}
	preferred map[string]string
)
