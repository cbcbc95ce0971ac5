package main

import (
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quote quotes s for a message, with curly quotation marks in a UTF-8 locale and otherwise with apostrophes.
// Unprintable characters are escaped as in C.
func quote(s string) string { return quoteFor(s, utf8Locale(os.Getenv)) }

func quoteFor(s string, utf bool) string {
	left, right := "'", "'"
	if utf {
		left, right = "‘", "’"
	}
	var b strings.Builder
	b.WriteString(left)
	for len(s) > 0 {
		r, n := rune(s[0]), 1
		if utf {
			r, n = utf8.DecodeRuneInString(s)
		}
		switch c := strings.IndexByte("\a\b\f\n\r\t\v\\", s[0]); {
		case c >= 0:
			b.WriteByte('\\')
			b.WriteByte(`abfnrtv\`[c])
		case s[:n] == right:
			b.WriteString(`\` + right)
		case r < ' ', r == 0x7f, r == utf8.RuneError && n == 1, r > 0x7f && (!utf || !unicode.IsGraphic(r)):
			for _, c := range []byte(s[:n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	b.WriteString(right)
	return b.String()
}

// utf8Locale reports whether the first of LC_ALL, LC_CTYPE and LANG that is not empty, as getenv reads them, names
// UTF-8.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, ".utf-8") || strings.Contains(v, ".utf8")
		}
	}
	return false
}
