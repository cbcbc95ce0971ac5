complete -c mcpdeadline -o alive -x -a 'progress log stderr notify cpu io' -d 'what counts as a sign of life, as SIGN[,SIGN...]'
complete -c mcpdeadline -o config -r -F -d 'read limits from this JSON FILE'
complete -c mcpdeadline -o declare -d 'declare the limits of each tool in the list of tools (default true)'
complete -c mcpdeadline -o grace -x -d 'DURATION that the server has to answer a cancelled call (default 7s)'
complete -c mcpdeadline -o header -x -d 'send the header NAME'
complete -c mcpdeadline -o help -d 'print this help and exit'
complete -c mcpdeadline -o host -x -a 'claude-code claude-desktop cline codex continue crush gemini-cli goose opencode qwen-code vscode zed' -d 'keep below the limit on a call of this HOST'
complete -c mcpdeadline -o host-pid -x -d 'end when the process with this PID ends'
complete -c mcpdeadline -o http -x -d 'serve Streamable HTTP at this ADDRESS instead of stdin and stdout'
complete -c mcpdeadline -o idle -x -d 'longest DURATION of a call without a sign of life (default 2m0s)'
complete -c mcpdeadline -o inspect -x -d 'show running calls to browsers on this machine, at http://ADDRESS/debug/tools'
complete -c mcpdeadline -o keep-alive -x -d 'DURATION between keep-alive notifications of a call'
complete -c mcpdeadline -o log -r -F -d 'append a line of JSON for each call to this FILE'
complete -c mcpdeadline -o ping -x -d 'DURATION that a server has to answer a ping if it does not answer a cancelled call, before it is killed'
complete -c mcpdeadline -o soft -x -d 'DURATION after which a call is answered with a handle and runs on'
complete -c mcpdeadline -o tool -x -d 'limits of one tool, such as NAME:total=1h,idle=5m'
complete -c mcpdeadline -o total -x -d 'total limit of a call, a DURATION (default 30m0s)'
complete -c mcpdeadline -o url -x -d 'URL of a server that speaks Streamable HTTP'
complete -c mcpdeadline -o version -d 'print the version and exit'

function __mcpdeadline_command
	set -l words (commandline -opc)
	set -l i (contains -i -- -- $words); or return
	complete -C (string join ' ' -- (string escape -- $words[(math $i + 1)..]) (commandline -ct))
end
complete -c mcpdeadline -x -a '(__mcpdeadline_command)'
