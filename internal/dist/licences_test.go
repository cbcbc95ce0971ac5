package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Licences are found under all their usual names, in the folders of linked packages and above, and
// nowhere else. A module without one cannot be released.
func TestLicences(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"UNLICENSE", "LICENCE.md", "License-MIT", "COPYING.LESSER", "NOTICE", "licensed.txt", "license.go",
		"README", "linked/LICENSE", "linked/deep/LICENSE.txt", "other/LICENSE"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]file{}
	if err := licencesIn(found, "m@v1", dir, []string{filepath.Join(dir, "linked", "deep"), dir}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"licences/m@v1/COPYING.LESSER", "licences/m@v1/LICENCE.md", "licences/m@v1/License-MIT", "licences/m@v1/NOTICE",
		"licences/m@v1/UNLICENSE", "licences/m@v1/linked/LICENSE", "licences/m@v1/linked/deep/LICENSE.txt",
	}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(found))); d != "" {
		t.Error(d)
	}
	if err := licencesIn(found, "m@v1", t.TempDir(), nil); err == nil {
		t.Error("a module without a licence is accepted")
	}
}

// A version, and a folder that the release may empty, are checked before anything is built.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"", "1.2.3", "v1.2", "v1.2.3 -X", "latest"} {
		if err := run(version, t.TempDir()); err == nil {
			t.Errorf("version %q is accepted", version)
		}
	}
	if err := (&release{out: dir}).emptyOut(); err == nil {
		t.Error("a folder with a file of somebody else's is emptied")
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error(err)
	}
}
