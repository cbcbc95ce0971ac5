package scripts_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// SPEC 6.28: what a launcher that is called by a process gives to the program. scripts/launched asks the real npm, pnpm,
// yarn and bun.
func TestEnvironmentBelowLauncher(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("this needs Node")
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the environment of another process")
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	module, err := filepath.Abs("npm/environment.js")
	if err != nil {
		t.Fatal(err)
	}
	quoted, _ := json.Marshal(module)
	print := write("print.js", `const env = require(`+string(quoted)+`)('deadline')
console.log(Object.keys(env).filter(k => /^(npm_|NODE|OWN)/.test(k)).sort().map(k => k + '=' + env[k]).join(' '))`)
	caller := write("caller.js", `process.title = process.argv[2]
const { spawnSync } = require('child_process')
const sets = { npm_command: 'exec', npm_lifecycle_event: 'npx', npm_lifecycle_script: 'deadline', npm_config_package: 'mcpdeadline', npm_config_loglevel: 'info', NODE_OPTIONS: '', NODE: 'theirs' }
if (/^npm (run|test)/.test(process.argv[2])) sets.npm_command = 'run-script', sets.npm_lifecycle_event = 'test'
spawnSync('sh', ['-c', process.argv[3]], { stdio: 'inherit', env: { ...process.env, ...sets } })`)
	const users = "NODE_OPTIONS=--no-warnings OWN=mine npm_config_loglevel=error"
	const nothing = "NODE=theirs NODE_OPTIONS= OWN=mine npm_command=run-script npm_config_loglevel=info npm_config_package=mcpdeadline npm_lifecycle_event=test npm_lifecycle_script=deadline"
	run := "'" + node + "' '" + print + "'"
	for _, tc := range []struct{ name, title, script, want string }{
		{"npx", "npm exec deadline 10 npx tool", run + "; :", users},
		{"npx, whose shell becomes the launcher", "npm exec deadline", "exec " + run, users},
		{"npm run", "npm run npx", run + "; :", nothing},
		{"npm test", "npm test", run + "; :", nothing},
		{"pnpm", "node /usr/bin/pnpm --package=mcpdeadline dlx deadline", run + "; :", users},
		{"yarn", "node /lib/yarn.js dlx -q deadline", run + "; :", users},
		{"bunx", "/usr/bin/bunx deadline", run + "; :", users},
		{"a variable of the shell's", "npm exec", "OWN=new npm_config_loglevel=silly " + run + "; :", "NODE_OPTIONS=--no-warnings OWN=new npm_config_loglevel=silly"},
		{"two shells", "npm exec", "sh -c \"" + run + "; :\"; :", users},
		// Nothing is known of the caller, so only what nobody sets by hand is left out.
		{"a program between", "server npx deadline", run + "; :", "NODE=theirs NODE_OPTIONS= OWN=mine npm_config_loglevel=info"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.Command(node, caller, tc.title, tc.script)
			cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, strings.Fields(users)...)
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != tc.want {
				t.Errorf("%s\nwant %s, %v", got, tc.want, err)
			}
		})
	}
}
