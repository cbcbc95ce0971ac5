package host

import (
	"bytes"
	"encoding/binary"
)

// parseArgs returns the arguments in b, a value of the sysctl kern.procargs2 of macOS: the number of arguments, the
// path of the executable, zero bytes, the arguments, and the environment. If b is too short for all arguments, it
// returns those that are complete.
func parseArgs(b []byte) (args []string) {
	if len(b) < 4 {
		return nil
	}
	n := binary.NativeEndian.Uint32(b)
	_, rest, found := bytes.Cut(b[4:], []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
	for ; found && n > 0; n-- {
		var arg []byte
		if arg, rest, found = bytes.Cut(rest, []byte{0}); found {
			args = append(args, string(arg))
		}
	}
	return args
}
