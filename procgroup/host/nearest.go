package host

import (
	"path"
	"slices"
	"strings"
)

// A program is what an ancestor runs, on systems that do not show who holds a pipe.
type program struct {
	pid  int
	name string
	args []string // of the command line, with the program itself; nil if they are not known
}

// nearest returns the index of the host among the ancestors, from the parent up: the peer of stdin, or
// else the nearest one that is not a launcher. It returns -1 if there is none.
func nearest(chain []program, peer int) int {
	if at := slices.IndexFunc(chain, func(p program) bool { return p.pid == peer }); at >= 0 {
		return at
	}
	return slices.IndexFunc(chain, func(p program) bool { return !isLauncher(p.name, p.args) })
}

// launchers start another program, and give it their own stdin.
var launchers = []string{
	"sh", "bash", "dash", "ash", "ksh", "zsh", "fish", "csh", "tcsh", "nu", "cmd", "powershell", "pwsh",
	"env", "nice", "nohup", "setsid", "stdbuf", "time", "timeout", "gtimeout", "deadline", "arch", "caffeinate",
	"sudo", "doas", "su", "tini", "dumb-init", "direnv", "mise", "asdf", "volta", "conhost",
	"npx", "npm", "pnpx", "pnpm", "yarn", "corepack", "bunx", "uv", "uvx", "pipx", "poetry", "pdm", "hatch", "rye",
}

// interpreters run launchers that are scripts.
var interpreters = []string{"node", "bun", "python", "python3", "ruby"}

// isLauncher reports whether a program is one that hosts put before the command of a server.
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

// plain returns the name of a program, or of a script, without what differs between installations:
// "npx" for /usr/lib/node_modules/npm/bin/npx-cli.js, "bash" for the "-bash" of a login.
func plain(file string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(file, `\`, "/")))
	name = strings.TrimPrefix(name, "-")
	for _, ext := range []string{".exe", ".js", ".cjs", ".mjs", ".py", ".cmd", "-cli"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}
