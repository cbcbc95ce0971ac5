package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// nfpm writes packages of Linux distributions. It is run, not imported, so that its requirements do not
// become the library's.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.0"

// buildNFPM returns the file of the program.
func (r *release) buildNFPM() (string, error) {
	cmd := exec.Command("go", "install", nfpm)
	cmd.Dir = r.tmp
	cmd.Env = append(os.Environ(), "GOBIN="+r.tmp, "GOFLAGS=", "GOWORK=off", "GOOS=", "GOARCH=")
	_, err := output(cmd)
	return filepath.Join(r.tmp, "nfpm"), err
}

// place returns where a file of the archive is installed on Linux; "" is nowhere.
func place(name string) string {
	folder, base := filepath.Split(name)
	switch program, isBash := strings.CutSuffix(base, ".bash"); {
	case folder == "man/":
		return "/usr/share/man/man1/" + base
	case folder == "completions/" && isBash:
		return "/usr/share/bash-completion/completions/" + program
	case folder == "completions/" && strings.HasSuffix(base, ".fish"):
		return "/usr/share/fish/vendor_completions.d/" + base
	case folder == "completions/":
		return "/usr/share/zsh/vendor-completions/" + base
	case strings.HasPrefix(name, "licences/"), base == "LICENSE", strings.HasSuffix(base, ".md"):
		return "/usr/share/doc/tooldeadline/" + name
	}
	return "/usr/bin/" + base
}

// packLinux packs the files of the archive for a system as deb and rpm, if it is Linux.
func (r *release) packLinux(nfpm string, s system, files []file) error {
	if s.os != "linux" {
		return nil
	}
	type info map[string]any
	mtime := r.time.Format("2006-01-02T15:04:05Z07:00")
	dir := filepath.Join(r.tmp, "packages", s.arch)
	var contents []info
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.data, 0o600); err != nil {
			return err
		}
		contents = append(contents, info{"src": path, "dst": place(f.name), "file_info": info{"mode": f.mode, "mtime": mtime}})
	}
	config, err := json.Marshal(info{
		"name": "tooldeadline", "platform": s.os, "arch": s.arch, "version": r.version, "mtime": mtime,
		"license": "MIT", "homepage": "https://github.com/tooldeadline/tooldeadline", "section": "utils",
		"maintainer":  "The tooldeadline authors <tooldeadline@users.noreply.github.com>",
		"description": npmDescription + ".", "contents": contents,
		"rpm": info{"buildhost": "tooldeadline"}, // not that of the machine
	})
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "nfpm.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return err
	}
	for _, form := range []string{"deb", "rpm"} {
		name := fmt.Sprintf("tooldeadline_%s_%s.%s", r.version, s, form)
		if _, err := output(exec.Command(nfpm, "package", "-f", path, "-p", form, "-t", filepath.Join(r.out, name))); err != nil {
			return err
		}
	}
	return nil
}
