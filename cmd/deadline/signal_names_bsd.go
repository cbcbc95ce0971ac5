//go:build unix && !linux

package main

const maxSignal = 32

// Real-time signals have no common range here.
const realTimeMin, realTimeMax sysSignal = 0, 0

var (
	aliases   = map[string]string{"IOT": "ABRT"}
	preferred map[string]string
)
