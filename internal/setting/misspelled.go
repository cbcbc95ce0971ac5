package setting

import (
	"slices"
	"strings"
)

// Misspelled returns the known key of which key is probably a misspelling. The two may differ in case, in underscores
// and hyphens, as "maxTotal" and "max_total" do, or by one letter that is missing, added, replaced, or exchanged with
// its neighbour. Misspelled returns "" if key is itself known, or resembles no known key: it then belongs to another
// program that shares the file.
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

// oneEdit reports whether a and b are equal, or differ by one letter that is missing, added, replaced, or exchanged
// with its neighbour.
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
