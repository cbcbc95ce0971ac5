# bash completion for deadline

_deadline() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=0 i IFS=$'\n'
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--idle | --alive | -k | --kill-after | -s | --signal)
			((i++))
			[[ ${COMP_WORDS[i]} == = ]] && ((i++))
			;;
		-*) ;;
		*)
			command=$((i + 1))
			break
			;;
		esac
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
	--idle)
		COMPREPLY=()
		return
		;;
	--alive)
		COMPREPLY=($(compgen -W $'output\ncpu\nio' -- "$cur"))
		return
		;;
	-k | --kill-after)
		COMPREPLY=()
		return
		;;
	-s | --signal)
		COMPREPLY=($(compgen -W $'TERM\nINT\nHUP\nQUIT\nKILL\nUSR1\nUSR2\nALRM\nSTOP\nCONT' -- "$cur"))
		return
		;;
	esac
	[[ $cur == -* ]] && COMPREPLY=($(compgen -W $'--idle\n--alive\n-k\n--kill-after\n-s\n--signal\n-p\n--preserve-status\n-f\n--foreground\n-v\n--verbose\n--stacks\n--notify\n--beat\n--help\n--version' -- "$cur"))
}
complete -F _deadline deadline
