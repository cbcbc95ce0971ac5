package procgroup

import (
	"os/exec"
	"slices"
	"strings"
)

// unattended is the environment in which the usual programs ask nobody. The documentation of
// Unattended has the reasons.
var unattended = []string{
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=true",
	"GIT_EDITOR=true",
	"GIT_SEQUENCE_EDITOR=true",
	"EDITOR=true",
	"VISUAL=true",
	"SSH_ASKPASS=false",
	"SSH_ASKPASS_REQUIRE=force",
	"PAGER=cat",
	"GIT_PAGER=cat",
	"MANPAGER=cat",
	"SYSTEMD_PAGER=cat",
	"DEBIAN_FRONTEND=noninteractive",
	"npm_config_yes=true",
	"TERM=dumb",
}

// Unattended sets environment variables that keep common programs from asking questions and from
// starting an editor or a pager. A variable that is already set, in cmd.Env or, if cmd.Env is nil,
// in this process, keeps its value.
//
//	GIT_TERMINAL_PROMPT=0           git asks for no user name or password
//	GIT_ASKPASS=true                git gets an empty answer from the program that it asks instead
//	GIT_EDITOR, EDITOR, VISUAL=true an editor leaves the text as it is: git merge takes the default
//	                                message, git commit without a message fails
//	GIT_SEQUENCE_EDITOR=true        git rebase -i leaves the list of commits as it is
//	SSH_ASKPASS=false,              ssh gets no password, no passphrase and no answer about an
//	SSH_ASKPASS_REQUIRE=force       unknown host, and fails
//	PAGER, GIT_PAGER, MANPAGER,     output is not paged
//	SYSTEMD_PAGER=cat
//	DEBIAN_FRONTEND=noninteractive  debconf takes the defaults; apt-get still asks [Y/n]
//	npm_config_yes=true             npm init and npx ask nothing
//	TERM=dumb                       no colours, no drawing
//
// Also leave cmd.Stdin nil: a command that reads its standard input then finds no input, and,
// because it has its own session, no terminal. For some programs there is only an option: sudo -n,
// gpg --batch, apt-get -y.
func Unattended() Option {
	return optionFunc(func(s *settings) { s.unattended = true })
}

// setUnattended adds the variables of unattended that cmd does not have.
func setUnattended(cmd *exec.Cmd) {
	env := cmd.Environ()
	for _, v := range unattended {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(env, func(has string) bool {
			key, _, _ := strings.Cut(has, "=")
			return key == name
		}) {
			env = append(env, v)
		}
	}
	cmd.Env = env
}
