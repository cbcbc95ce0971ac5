# bash completion for mcpdeadline

_mcpdeadline() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=0 i IFS=$'\n'
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			command=$((i + 1))
			break
		fi
	done
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
	-alive)
		COMPREPLY=($(compgen -W $'progress\nlog\nstderr\nnotify\ncpu\nio' -- "$cur"))
		return
		;;
	-config)
		COMPREPLY=($(compgen -f -- "$cur"))
		return
		;;
	-grace)
		COMPREPLY=()
		return
		;;
	-header)
		COMPREPLY=()
		return
		;;
	-host)
		COMPREPLY=($(compgen -W $'claude-code\nclaude-desktop\ncline\ncodex\ncontinue\ncrush\ngemini-cli\ngoose\nopencode\nqwen-code\nvscode\nzed' -- "$cur"))
		return
		;;
	-host-pid)
		COMPREPLY=()
		return
		;;
	-http)
		COMPREPLY=()
		return
		;;
	-idle)
		COMPREPLY=()
		return
		;;
	-inspect)
		COMPREPLY=()
		return
		;;
	-keep-alive)
		COMPREPLY=()
		return
		;;
	-log)
		COMPREPLY=($(compgen -f -- "$cur"))
		return
		;;
	-ping)
		COMPREPLY=()
		return
		;;
	-soft)
		COMPREPLY=()
		return
		;;
	-tool)
		COMPREPLY=()
		return
		;;
	-total)
		COMPREPLY=()
		return
		;;
	-url)
		COMPREPLY=()
		return
		;;
	esac
	[[ $cur == -* ]] && COMPREPLY=($(compgen -W $'-alive\n-config\n-declare\n-grace\n-header\n-help\n-host\n-host-pid\n-http\n-idle\n-inspect\n-keep-alive\n-log\n-ping\n-soft\n-tool\n-total\n-url\n-version' -- "$cur"))
}
complete -F _mcpdeadline mcpdeadline
