package job

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// The bounds of a pattern that Compile accepts.
const (
	maxPattern = 1000 // bytes
	maxProgram = 5000 // instructions of the compiled pattern; all of them may run for each character of a line
)

// Compile compiles a pattern for [Until.Match] that comes from outside the program, such as from a model. The syntax is
// that of [regexp.Compile]. Compile returns an error for a pattern that is invalid, or whose search could take too much
// memory or time: one of more than 1000 bytes, or of more than 5000 instructions when compiled. Each character, class,
// operator and parenthesis is about one instruction, in each copy that a repetition makes of it. The error says what is
// accepted.
func Compile(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("pattern of %d bytes: want at most %d", len(pattern), maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: want a regular expression in RE2 syntax: %w", pattern, err)
	}
	if program, err := syntax.Compile(parsed.Simplify()); err != nil || len(program.Inst) > maxProgram {
		return nil, fmt.Errorf("pattern %q: want fewer repetitions: at most %d characters, classes, operators and parentheses when they are written out", pattern, maxProgram)
	}
	return regexp.Compile(pattern)
}
