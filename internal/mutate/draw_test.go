package main

import (
	"bytes"
	"testing"
)

// Each fault is found again where it was, also after lines have been added above it, and not where its line is gone.
func TestFind(t *testing.T) {
	src := []byte("package p\n\nfunc (t T) f(a, b int) bool {\n\tif a < b {\n\t\treturn true\n\t}\n\tif a < b {\n\t\tb++\n\t}\n\treturn a+1 == b\n}\n")
	all, err := faults("p", "p.go", src)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 11 {
		t.Errorf("%d faults: %v", len(all), all)
	}
	moved := bytes.Replace(src, []byte("package p\n"), []byte("package p\n\nfunc f(a, b int) bool { return a < b }\n"), 1)
	seen := map[int]int{}
	for _, f := range all {
		at := f.find(src)
		seen[at]++
		if at < 0 || f.find(moved) != at+len(moved)-len(src) {
			t.Errorf("%v is at %d, and at %d", f, at, f.find(moved))
		}
		if at := f.find([]byte("package p\n")); at != -1 {
			t.Errorf("%v is at %d where there is nothing", f, at)
		}
	}
	if len(seen) != 9 { // an operator and its condition begin at different offsets, two operators at one
		t.Errorf("faults at %v", seen)
	}
}
