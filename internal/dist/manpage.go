package main

import (
	"fmt"
	"strings"
	"time"
)

// manPage returns the manual page of a program, for man(1).
func manPage(m *manual, purpose, version string, at time.Time) []byte {
	var b strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	f(".TH %s 1 %s %q\n", strings.ToUpper(m.name), at.Format(time.DateOnly), "tooldeadline "+version)
	f(".SH NAME\n%s \\- %s\n", m.name, roff(purpose))
	f(".SH SYNOPSIS\n")
	for i, s := range m.synopsis {
		if i > 0 {
			f(".br\n")
		}
		f(".B %s\n%s\n", m.name, roff(s))
	}
	f(".SH DESCRIPTION\n%s\n", roffLines(m.about))
	f(".SH OPTIONS\n")
	for _, o := range m.options {
		names := `\fB` + roff(o.long) + `\fR`
		if o.short != "" {
			names = `\fB` + roff(o.short) + `\fR, ` + names
		}
		if o.arg != "" {
			sep := " "
			if strings.HasPrefix(o.long, "--") {
				sep = "="
			}
			names += sep + `\fI` + roff(o.arg) + `\fR`
		}
		f(".TP\n%s\n%s\n", names, roffLines(o.text))
	}
	f(".SH NOTES\n")
	for i, n := range m.notes {
		if i > 0 {
			f(".PP\n")
		}
		f("%s\n", roffLines(n))
	}
	f(".SH EXIT STATUS\n")
	for _, s := range m.status {
		f(".TP\n.B %s\n%s\n", roff(s.line), roffLines(s.text))
	}
	f(".SH EXAMPLES\n")
	for _, e := range m.examples {
		f(".TP\n\\fB%s\\fR\n%s\n", roff(e.line), roffLines(e.text))
	}
	f(".SH SEE ALSO\n.BR timeout (1),\nhttps://github.com/tooldeadline/tooldeadline\n")
	return []byte(b.String())
}

var roffSpecial = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, `^`, `\(ha`, `~`, `\(ti`, "`", `\(ga`)

func roff(s string) string { return roffSpecial.Replace(s) }

// roffLines escapes a paragraph. A line that begins with a dot would be a request.
func roffLines(s string) string {
	lines := strings.Split(roff(s), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n.br\n")
}
