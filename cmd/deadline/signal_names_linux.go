package main

const maxSignal = 64

// What the C library leaves of the real-time signals; it keeps two for itself.
const realTimeMin, realTimeMax sysSignal = 34, maxSignal

// aliases are other names for signals, and preferred the names that are printed where
// they are not the ones of package unix.
var (
	aliases   = map[string]string{"CLD": "CHLD", "POLL": "IO", "IOT": "ABRT"}
	preferred = map[string]string{"IO": "POLL"}
)
