package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// SPEC 17.2: an archive has the same bytes in whatever order its files are found, and does not name the user
// who made it, or the time.
func TestArchivesAreReproducible(t *testing.T) {
	files := []file{{"b", 0o755, []byte("program")}, {"a/c", 0o644, []byte("text")}, {"a/b", 0o644, nil}}
	reversed := slices.Clone(files)
	slices.Reverse(reversed)
	at := time.Unix(1_700_000_000, 0).UTC()
	for name, pack := range map[string]func(string, []file, time.Time) ([]byte, error){"tar.gz": tarGz, "zip": zipped} {
		first, err := pack("folder", files, at)
		if err != nil {
			t.Fatal(name, err)
		}
		second, err := pack("folder", reversed, at)
		if err != nil {
			t.Fatal(name, err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s: the order of the files makes a difference", name)
		}
	}
	packed, _ := tarGz("folder", files, at)
	type entry struct {
		Name string
		Mode fs.FileMode
		Data string
		User int
	}
	var got []entry
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(r)
		if !h.ModTime.Equal(at) {
			t.Errorf("%s: %v", h.Name, h.ModTime)
		}
		got = append(got, entry{h.Name, fs.FileMode(h.Mode), string(data), h.Uid})
	}
	want := []entry{{"folder/a/b", 0o644, "", 0}, {"folder/a/c", 0o644, "text", 0}, {"folder/b", 0o755, "program", 0}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
