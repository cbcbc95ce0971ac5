//go:build unix && !linux

package main

const maxSignal = 32

// These systems have no common range of real-time signals.
const realTimeMin, realTimeMax sysSignal = 0, 0

var (
	aliases   = map[string]string{"IOT": "ABRT"}
	preferred map[string]string
)
