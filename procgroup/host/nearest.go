package host

import (
	"path"
	"slices"
	"strings"
)

// A program describes the program of an ancestor, on systems that do not show which process holds a pipe.
type program struct {
	pid  int
	name string
	args []string // the command line, beginning with the program; nil if it is not known
}

// nearest returns the index of the host in chain, the ancestors from the parent up. The host is the process peer, at
// the other end of stdin, or else the nearest ancestor that is not a launcher. nearest returns -1 if there is no host.
func nearest(chain []program, peer int) int {
	if at := slices.IndexFunc(chain, func(p program) bool { return p.pid == peer }); at >= 0 {
		return at
	}
	return slices.IndexFunc(chain, func(p program) bool { return !isLauncher(p.name, p.args) })
}

// launchers lists programs that start another program, and pass their own stdin to it.
var launchers = []string{
	"sh", "bash", "dash", "ash", "ksh", "zsh", "fish", "csh", "tcsh", "nu", "cmd", "powershell", "pwsh",
	"env", "nice", "nohup", "setsid", "stdbuf", "time", "timeout", "gtimeout", "deadline", "arch", "caffeinate",
	"sudo", "doas", "su", "tini", "dumb-init", "direnv", "mise", "asdf", "volta", "conhost",
	"npx", "npm", "pnpx", "pnpm", "yarn", "corepack", "bunx", "uv", "uvx", "pipx", "poetry", "pdm", "hatch", "rye",
}

// interpreters lists programs that may run a launcher that is a script.
var interpreters = []string{"node", "bun", "python", "python3", "ruby"}

// isLauncher reports whether a program with that name and command line is one of launchers, or an interpreter that runs
// one.
func isLauncher(name string, args []string) bool {
	name = plain(name)
	if slices.Contains(launchers, name) {
		return true
	}
	// Node's launchers overwrite their arguments with a title, such as "npm exec server".
	if len(args) > 0 {
		if title := strings.Fields(args[0]); len(title) > 1 && slices.Contains(launchers, plain(title[0])) {
			return true
		}
	}
	if i := strings.IndexAny(name, ".0123456789"); i > 0 { // python3.12
		name = name[:i]
	}
	if !slices.Contains(interpreters, name) {
		return false
	}
	for _, arg := range args[min(1, len(args)):] {
		if !strings.HasPrefix(arg, "-") {
			return slices.Contains(launchers, plain(arg))
		}
	}
	return false
}

// plain returns the base name of a program or script, in lower case and without a suffix such as ".exe" or "-cli" or
// the dash of a login shell: "npx" for /usr/lib/node_modules/npm/bin/npx-cli.js, and "bash" for "-bash".
func plain(file string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(file, `\`, "/")))
	name = strings.TrimPrefix(name, "-")
	for _, ext := range []string{".exe", ".js", ".cjs", ".mjs", ".py", ".cmd", "-cli"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}
