// Dist makes what a release of the two programs consists of, for people who have no Go:
//
//	go run ./internal/dist -version v0.1.0 -o dist
//
// There is an archive for each system, with the programs, their manual pages and completions, and the
// licences of all that is linked into them; the same as deb and rpm for Linux; the packages for npm;
// server.json for the MCP registry; and SHA256SUMS. It builds the commit that is checked out, not the files that are: two builds of a
// commit with the same Go and npm are the same bytes, wherever they are made. It needs git and npm.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// programs are the folders in cmd/ that are released.
var programs = []string{"deadline", "mcpdeadline"}

// purposes are the programs' lines in an index of manual pages.
var purposes = map[string]string{
	"deadline":    "run a command with limits on its duration and on its silence",
	"mcpdeadline": "serve an MCP server with limits on each tool call",
}

// A system is what a program is built for.
type system struct{ os, arch string }

var systems = []system{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func (s system) String() string { return s.os + "_" + s.arch }

// executable returns the name of a program's file.
func (s system) executable(program string) string {
	if s.os == "windows" {
		return program + ".exe"
	}
	return program
}

// A release is one run of this program.
type release struct {
	version string    // v1.2.3
	commit  string    // in full
	time    time.Time // of the commit; that of everything in an archive
	source  string    // a clone of the commit
	tmp     string
	out     string
}

func main() {
	var (
		version = flag.String("version", "", "`VERSION` of the release, such as v0.1.0")
		out     = flag.String("o", "dist", "`FOLDER` for the result, which is emptied first")
	)
	flag.Parse()
	if err := run(*version, *out); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

var semver = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func run(version, out string) (err error) {
	if !semver.MatchString(version) {
		return fmt.Errorf("-version: %q is not a version like v0.1.0", version)
	}
	tmp, err := os.MkdirTemp("", "dist-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	r := &release{version: version, tmp: tmp, source: filepath.Join(tmp, "source")}
	if r.out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := r.checkOut(); err != nil {
		return err
	}
	if err := r.emptyOut(); err != nil {
		return err
	}
	common, err := r.common()
	if err != nil {
		return err
	}
	nfpm, err := r.buildNFPM()
	if err != nil {
		return err
	}
	for _, s := range systems {
		binaries, err := r.build(s)
		if err != nil {
			return err
		}
		licences, err := r.licences(s)
		if err != nil {
			return err
		}
		if err := r.archive(s, slices.Concat(common, binaries, licences)); err != nil {
			return err
		}
		if err := r.packLinux(nfpm, s, slices.Concat(common, binaries, licences)); err != nil {
			return err
		}
		if err := r.packPlatform(s, slices.Concat(binaries, licences)); err != nil {
			return err
		}
	}
	if err := r.packMain(common); err != nil {
		return err
	}
	if err := r.describe(); err != nil {
		return err
	}
	return r.sums()
}

// checkOut clones the commit, so that no file that is not in it gets into the release.
func (r *release) checkOut() error {
	dirty, err := output(exec.Command("git", "status", "--porcelain"))
	if err != nil {
		return err
	}
	if dirty != "" {
		fmt.Fprintln(os.Stderr, "dist: note: uncommitted changes are left out")
	}
	top, err := output(exec.Command("git", "rev-parse", "--show-toplevel"))
	if err != nil {
		return err
	}
	if _, err := output(exec.Command("git", "clone", "-q", "--no-tags", top, r.source)); err != nil {
		return err
	}
	about, err := output(exec.Command("git", "-C", r.source, "show", "-s", "--format=%H %cI"))
	if err != nil {
		return err
	}
	commit, at, _ := strings.Cut(about, " ")
	r.commit = commit
	r.time, err = time.Parse(time.RFC3339, at)
	r.time = r.time.UTC()
	return err
}

// emptyOut removes what an earlier run has made, and nothing else: a folder that no run has made is
// refused.
func (r *release) emptyOut() error {
	entries, err := os.ReadDir(r.out)
	if errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(r.out, 0o755)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isOurs(e.Name()) {
			return fmt.Errorf("-o: %s has %s, which is no file of a release; want an empty folder", r.out, e.Name())
		}
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(r.out, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func isOurs(name string) bool {
	return name == sumsFile || name == registryFile || slices.Contains([]string{".gz", ".zip", ".tgz", ".deb", ".rpm"}, filepath.Ext(name))
}

// common returns the files that are the same in all archives.
func (r *release) common() ([]file, error) {
	var files []file
	for from, to := range map[string]string{
		"LICENSE":                   "LICENSE",
		"CHANGELOG.md":              "CHANGELOG.md",
		"cmd/deadline/README.md":    "deadline.md",
		"cmd/mcpdeadline/README.md": "mcpdeadline.md",
	} {
		data, err := os.ReadFile(filepath.Join(r.source, filepath.FromSlash(from)))
		if err != nil {
			return nil, err
		}
		files = append(files, file{to, 0o644, data})
	}
	for _, program := range programs {
		path, err := r.compile(program, system{runtime.GOOS, runtime.GOARCH})
		if err != nil {
			return nil, err
		}
		help, err := output(&exec.Cmd{Path: path, Args: []string{program, "--help"}})
		if err != nil {
			return nil, err
		}
		m, err := parseHelp(program, help)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"man/" + program + ".1", 0o644, manPage(m, purposes[program], r.version, r.time)})
		files = append(files, completions(m, program == "mcpdeadline")...)
	}
	return files, nil
}

// build returns the programs for a system.
func (r *release) build(s system) ([]file, error) {
	fmt.Fprintln(os.Stderr, "dist:", s)
	var files []file
	for _, program := range programs {
		path, err := r.compile(program, s)
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, file{s.executable(program), 0o755, data})
	}
	return files, nil
}

// compile returns the file of a program for a system. The caller's environment does not influence the build, so that
// two people get the same bytes.
func (r *release) compile(program string, s system) (string, error) {
	path := filepath.Join(r.tmp, s.String(), s.executable(program))
	_, err := output(r.goCommand(program, s, "build", "-o", path, "-ldflags",
		fmt.Sprintf("-s -w -X main.linkedVersion=%s -X main.linkedCommit=%s", r.version, r.commit)))
	return path, err
}

// goCommand returns a command of go in the module of a program, for a system.
func (r *release) goCommand(program string, s system, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(r.source, "cmd", program)
	for _, v := range os.Environ() {
		// These change what is built, other than by the commit and the version of Go.
		name, _, _ := strings.Cut(v, "=")
		switch {
		case slices.Contains([]string{"GOFLAGS", "GOWORK", "GOOS", "GOARCH", "GOEXPERIMENT", "GOENV", "CGO_ENABLED", "GOFIPS140"}, name):
		case regexp.MustCompile(`^GO(386|AMD64|ARM|ARM64|MIPS|MIPS64|PPC64|RISCV64|WASM)$`).MatchString(name):
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false -mod=readonly",
		"GOOS="+s.os, "GOARCH="+s.arch)
	return cmd
}

const sumsFile = "SHA256SUMS"

// sums writes the checksums of all files, in the form of sha256sum.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, sumsFile), text.Bytes(), 0o644)
}

// output runs a command and returns what it prints, without the last newline. The error has the
// command's stderr.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, cmp.Or(stderr.String(), string(out)))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
