package terminal

import "slices"

// modes are the settings of a terminal for its input at the time of the call of modesOf.
type modes struct {
	canonical bool  // the terminal collects lines, of at most maxLine bytes and a line end
	maxLine   int   // 0 if canonical is false
	keys      []key // the bytes on which the terminal acts
	strips    bool  // the terminal clears the eighth bit
	signals   bool  // the terminal sends signals for some bytes
	keeps     bool  // a byte that sends a signal does not discard the unfinished line
	newline   byte  // a byte that ends a line as '\n' does; 0 if there is none
}

// A key is a byte on which a terminal acts, instead of passing it on to the command.
type key struct {
	b           byte
	description string // what the terminal does, as in "it stops the output"
	effect      effect
}

type effect uint8

const (
	other     effect = iota // none of the effects below
	passed                  // is passed on as another byte
	quote                   // passes on the next byte, whatever it is
	interrupt               // sends SIGINT, discards the unfinished line unless keeps is set, and lets stopped output go on
	signal                  // sends SIGQUIT or SIGTSTP, with the same effects on the line and the output
	end                     // ends the input, or passes on the unfinished line
	kill                    // erases the unfinished line
	erase                   // erases the last character or word of the line
	stop                    // stops the output
	goOn                    // lets stopped output go on
)

// take returns the key for b, or nil if the terminal passes b on unchanged.
func (m *modes) take(b byte) *key {
	if b >= 0x80 && m.strips {
		stripped := key{b, "it clears the eighth bit", passed}
		if k := m.take(b & 0x7f); k != nil {
			stripped.effect = k.effect
		}
		return &stripped
	}
	if i := slices.IndexFunc(m.keys, func(k key) bool { return k.b == b }); i >= 0 {
		return &m.keys[i]
	}
	return nil
}

// find returns the first byte that has the effect e, and reports whether there is one.
func (m *modes) find(e effect) (b byte, ok bool) {
	if i := slices.IndexFunc(m.keys, func(k key) bool { return k.effect == e }); i >= 0 {
		return m.keys[i].b, true
	}
	return 0, false
}
