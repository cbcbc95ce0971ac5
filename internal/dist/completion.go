package main

import (
	"fmt"
	"strings"
)

// completions returns the completions of a program for three shells: options, the values that the help
// lists, and then the command's own completions. The program runs a command: after
// "--" if dashes is true, otherwise after one argument of its own.
func completions(m *manual, dashes bool) []file {
	return []file{
		{"completions/" + m.name + ".bash", 0o644, []byte(bash(m, dashes))},
		{"completions/_" + m.name, 0o644, []byte(zsh(m, dashes))},
		{"completions/" + m.name + ".fish", 0o644, []byte(fish(m, dashes))},
	}
}

// names returns the names of an option.
func (o option) names() []string {
	if o.short == "" {
		return []string{o.long}
	}
	return []string{o.short, o.long}
}

// bash finds where the command begins, and leaves the rest to bash-completion, where it is loaded.
func bash(m *manual, dashes bool) string {
	var all, valued, cases []string
	for _, o := range m.options {
		all = append(all, o.names()...)
		if o.arg == "" {
			continue
		}
		valued = append(valued, o.names()...)
		var reply string
		switch values := o.values(); {
		case values != nil:
			reply = fmt.Sprintf(`COMPREPLY=($(compgen -W %s -- "$cur"))`, bashWords(values))
		case o.arg == "FILE":
			reply = `COMPREPLY=($(compgen -f -- "$cur"))`
		default:
			reply = `COMPREPLY=()`
		}
		cases = append(cases, fmt.Sprintf("\t%s)\n\t\t%s\n\t\treturn\n\t\t;;\n", strings.Join(o.names(), " | "), reply))
	}
	command := `	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		` + strings.Join(valued, " | ") + `)
			((i++))
			[[ ${COMP_WORDS[i]} == = ]] && ((i++))
			;;
		-*) ;;
		*)
			command=$((i + 1))
			break
			;;
		esac
	done`
	if dashes {
		command = `	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			command=$((i + 1))
			break
		fi
	done`
	}
	return fmt.Sprintf(`# bash completion for %[1]s

_%[1]s() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=0 i IFS=$'\n'
%[2]s
	if ((command > 0)); then
		if declare -F _comp_command_offset >/dev/null; then
			_comp_command_offset "$command"
		elif declare -F _command_offset >/dev/null; then
			_command_offset "$command"
		elif ((COMP_CWORD == command)); then
			COMPREPLY=($(compgen -c -- "$cur"))
		else
			COMPREPLY=($(compgen -f -- "$cur"))
		fi
		return
	fi
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	case $prev in
%[3]s	esac
	[[ $cur == -* ]] && COMPREPLY=($(compgen -W %[4]s -- "$cur"))
}
complete -F _%[1]s %[1]s
`, m.name, command, strings.Join(cases, ""), bashWords(all))
}

// bashWords returns words for compgen, separated as IFS says.
func bashWords(words []string) string { return `$'` + strings.Join(words, `\n`) + `'` }

func zsh(m *manual, dashes bool) string {
	var specs []string
	for _, o := range m.options {
		spec := "[" + zshText(brief(o.text)) + "]"
		if o.arg != "" {
			action := " "
			switch values := o.values(); {
			case values != nil:
				action = "(" + strings.Join(values, " ") + ")"
			case o.arg == "FILE":
				action = "_files"
			}
			spec += ":" + zshText(o.arg) + ":" + action
		}
		for _, name := range o.names() {
			others := "(" + strings.Join(o.names(), " ") + ")"
			if strings.Contains(o.text, "may be repeated") {
				others = "*"
			}
			if o.arg != "" && strings.HasPrefix(name, "--") {
				name += "="
			}
			specs = append(specs, fmt.Sprintf("%q", others+name+spec))
		}
	}
	begin, rest := "", `"(-)1:DURATION: " "*:::command:_normal"`
	if dashes {
		begin = `	local i=${words[(i)--]}
	if ((i < CURRENT)); then
		shift $i words
		((CURRENT -= i))
		_normal
		return
	fi
`
		rest = `"*: : "`
	}
	return fmt.Sprintf("#compdef %[1]s\n\n_%[1]s() {\n%[2]s\t_arguments -S %[3]s \\\n\t\t%[4]s\n}\n_%[1]s \"$@\"\n",
		m.name, begin, strings.Join(specs, " \\\n\t\t"), rest)
}

// zshText escapes a text within a specification of _arguments, for double quotes.
func zshText(s string) string {
	return strings.NewReplacer(`[`, `(`, `]`, `)`, `:`, ` -`, `$`, ``, "`", ``, `\`, ``, `"`, ``).Replace(s)
}

func fish(m *manual, dashes bool) string {
	var b strings.Builder
	var valued []string
	for _, o := range m.options {
		if o.arg != "" {
			valued = append(valued, o.names()...)
		}
		fmt.Fprintf(&b, "complete -c %s", m.name)
		if o.short != "" {
			fmt.Fprintf(&b, " -s %s", strings.TrimLeft(o.short, "-"))
		}
		if long, gnu := strings.CutPrefix(o.long, "--"); gnu {
			fmt.Fprintf(&b, " -l %s", long)
		} else {
			fmt.Fprintf(&b, " -o %s", strings.TrimPrefix(o.long, "-"))
		}
		switch values := o.values(); {
		case o.arg == "":
		case values != nil:
			fmt.Fprintf(&b, " -x -a '%s'", strings.Join(values, " "))
		case o.arg == "FILE":
			b.WriteString(" -r -F")
		default:
			b.WriteString(" -x")
		}
		fmt.Fprintf(&b, " -d '%s'\n", strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(brief(o.text)))
	}
	begin := `	set -l i 2
	while test $i -le (count $words)
		switch $words[$i]
			case ` + strings.Join(valued, " ") + `
				set i (math $i + 2)
			case '-*'
				set i (math $i + 1)
			case '*'
				break
		end
	end
	test $i -le (count $words); or return`
	if dashes {
		begin = `	set -l i (contains -i -- -- $words); or return`
	}
	fmt.Fprintf(&b, `
function __%[1]s_command
	set -l words (commandline -opc)
%[2]s
	complete -C (string join ' ' -- (string escape -- $words[(math $i + 1)..]) (commandline -ct))
end
complete -c %[1]s -x -a '(__%[1]s_command)'
`, m.name, begin)
	return b.String()
}

// brief returns the first clause of a text.
func brief(s string) string {
	for _, end := range []string{"; ", ". ", ": "} {
		s, _, _ = strings.Cut(s, end)
	}
	return s
}
