complete -c deadline -l idle -x -d 'also stop COMMAND if it has not written anything for this long'
complete -c deadline -l alive -x -a 'output cpu io' -d 'what counts as a sign of life for --idle'
complete -c deadline -s k -l kill-after -x -d 'also send a KILL signal if COMMAND is still running this long after the first signal was sent'
complete -c deadline -s s -l signal -x -a 'TERM INT HUP QUIT KILL USR1 USR2 ALRM STOP CONT' -d 'the signal to send when a limit is reached, a name like HUP or a number (default TERM)'
complete -c deadline -s p -l preserve-status -d 'exit with the status of COMMAND even if it was stopped'
complete -c deadline -s f -l foreground -d 'when not started from a shell prompt, let COMMAND read from the terminal and get its signals'
complete -c deadline -s v -l verbose -d 'report on standard error which signals are sent and, with --idle, what COMMAND and its descendants were doing'
complete -c deadline -l stacks -d 'when a limit is reached, let the programs of COMMAND first write where each of their threads is'
complete -c deadline -l notify -d 'let COMMAND say that it works: its heartbeats count for --idle, with any of --alive'
complete -c deadline -l beat -d 'send a heartbeat, with DETAIL, to the program that has started this one or an ancestor of it with --notify'
complete -c deadline -l help -d 'print this help and exit'
complete -c deadline -l version -d 'print the version and exit'

function __deadline_command
	set -l words (commandline -opc)
	set -l i 2
	while test $i -le (count $words)
		switch $words[$i]
			case --idle --alive -k --kill-after -s --signal
				set i (math $i + 2)
			case '-*'
				set i (math $i + 1)
			case '*'
				break
		end
	end
	test $i -le (count $words); or return
	complete -C (string join ' ' -- (string escape -- $words[(math $i + 1)..]) (commandline -ct))
end
complete -c deadline -x -a '(__deadline_command)'
