package terminal

import "slices"

// modes describe what a terminal does to the input that is typed now.
type modes struct {
	canonical bool // the terminal keeps lines, of at most maxLine bytes and their end
	maxLine   int
	keys      []key
	strips    bool // the terminal clears the eighth bit
	signals   bool // the terminal sends signals for some bytes
	newline   byte // ends a line as '\n' does; 0 if no other byte does
}

// A key is a byte that a terminal takes for itself.
type key struct {
	b           byte
	description string
	effect      effect
}

type effect uint8

const (
	other     effect = iota
	interrupt        // makes a signal, discards the unfinished line, and lets stopped output go on
	signal           // makes another signal, with the same effects on the line and the output
	end              // ends the input, or passes on the unfinished line
	kill             // erases the unfinished line
	erase            // erases the last character or word of the line
	stop             // stops the output
	goOn             // lets stopped output go on
)

// take returns what the terminal does with b, or nil if it passes b on.
func (m *modes) take(b byte) *key {
	if b >= 0x80 && m.strips {
		return &key{b: b, description: "it clears the eighth bit"}
	}
	if i := slices.IndexFunc(m.keys, func(k key) bool { return k.b == b }); i >= 0 {
		return &m.keys[i]
	}
	return nil
}

// find returns the byte that has the effect e, and reports whether there is one.
func (m *modes) find(e effect) (b byte, ok bool) {
	if i := slices.IndexFunc(m.keys, func(k key) bool { return k.effect == e }); i >= 0 {
		return m.keys[i].b, true
	}
	return 0, false
}
