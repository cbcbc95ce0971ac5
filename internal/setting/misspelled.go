package setting

import (
	"slices"
	"strings"
)

// Misspelled returns which of the known keys a key was probably meant to be: one that differs from it in the case
// of its letters, in its underscores, as "maxTotal" does from "max_total", or by one letter that is missing, added,
// replaced, or exchanged with its neighbour. It returns "" for a key that is known, and for one that is none of these, which belongs to
// somebody else who shares the file.
func Misspelled(key string, known []string) string {
	if slices.Contains(known, key) {
		return ""
	}
	folded := strings.ReplaceAll(strings.ToLower(key), "-", "_")
	bare := strings.NewReplacer("_", "")
	for _, k := range known {
		if oneEdit(folded, k) || bare.Replace(folded) == bare.Replace(k) {
			return k
		}
	}
	return ""
}

// oneEdit reports whether a and b are equal, or differ by one letter.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i == len(a) || a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}
