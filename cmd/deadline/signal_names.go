//go:build unix

package main

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const defaultSignal = unix.SIGTERM

// parseSignal parses the name of a signal, with or without SIG, in upper or lower case; or its number; or the exit
// status of a process that the signal has ended, which is the number plus 128 or, in some shells, 256. EXIT and 0 mean
// no signal. The error is a usageError.
func parseSignal(s string) (syscall.Signal, error) {
	if s != "" && '0' <= s[0] && s[0] <= '9' {
		n, err := strconv.ParseInt(s, 10, 32)
		if n >= 0xff {
			n &= 0xff
		} else {
			n &= 0x7f
		}
		if err == nil && n <= maxSignal {
			return syscall.Signal(n), nil
		}
		return 0, usageError(quote(s) + ": invalid signal")
	}
	name := strings.ToUpper(s)
	for _, name := range [...]string{name, strings.TrimPrefix(name, "SIG")} {
		if sig, ok := signalNumber(name); ok {
			return sig, nil
		}
	}
	return 0, usageError(quote(s) + ": invalid signal")
}

// signalNumber returns the signal with the given name, in upper case and without SIG. The bool is false if the system
// has no such signal.
func signalNumber(name string) (syscall.Signal, bool) {
	switch alias := aliases[name]; {
	case name == "EXIT":
		return 0, true
	case alias != "":
		name = alias
	}
	if sig := unix.SignalNum("SIG" + name); sig != 0 {
		return sig, true
	}
	return realTimeNumber(name)
}

// signalName returns the name of a signal without SIG, or its number if it has no name.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		name = strings.TrimPrefix(name, "SIG")
		if alias := preferred[name]; alias != "" {
			return alias
		}
		return name
	}
	if name := realTimeName(sig); name != "" {
		return name
	}
	return strconv.Itoa(int(sig))
}

// realTimeNumber returns the signal RTMIN, RTMIN+n, RTMAX or RTMAX-n. The bool is false for any other name.
func realTimeNumber(name string) (syscall.Signal, bool) {
	base, offset, sign := syscall.Signal(0), "", ""
	if rest, ok := strings.CutPrefix(name, "RTMIN"); ok {
		base, offset, sign = realTimeMin, rest, "+"
	} else if rest, ok := strings.CutPrefix(name, "RTMAX"); ok {
		base, offset, sign = realTimeMax, rest, "-"
	}
	if base == 0 {
		return 0, false
	}
	if offset == "" {
		return base, true
	}
	n, err := strconv.Atoi(offset)
	sig := base + syscall.Signal(n)
	return sig, err == nil && strings.HasPrefix(offset, sign) && realTimeMin <= sig && sig <= realTimeMax
}

// realTimeName returns the name of a real-time signal, or "" for any other signal.
func realTimeName(sig syscall.Signal) string {
	switch {
	case realTimeMin == 0 || sig < realTimeMin || sig > realTimeMax:
		return ""
	case sig == realTimeMin:
		return "RTMIN"
	case sig == realTimeMax:
		return "RTMAX"
	case sig <= (realTimeMin+realTimeMax)/2:
		return "RTMIN+" + strconv.Itoa(int(sig-realTimeMin))
	default:
		return "RTMAX-" + strconv.Itoa(int(realTimeMax-sig))
	}
}
