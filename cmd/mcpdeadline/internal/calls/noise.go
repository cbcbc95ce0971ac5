package calls

import (
	"bytes"
	"fmt"
)

// maxNoise bounds what is shown of a line of a server that is no message.
const maxNoise = 4 << 10

// NoiseMark begins each line on stderr that the server has sent and that is no message.
const NoiseMark = "mcpdeadline: no message from the server: "

// noise writes a text that is no message to stderr, and advises once what to do about it. It counts as
// output on stderr.
func (s *Session) noise(text []byte) {
	shown := text
	if len(text) > maxNoise {
		shown = append(bytes.ToValidUTF8(text[:maxNoise:maxNoise], nil), "..."...)
	}
	fmt.Fprintf(s.Stderr, "%s%s\n", NoiseMark, shown)
	s.advised.Do(func() {
		s.Logger.Warn("the server sends what is no message, and many hosts would end the session then; it should print to stderr", "bytes", len(text))
	})
	if s.Alive.Stderr {
		s.sign(nil)
	}
}
