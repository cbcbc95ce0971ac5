// What run_command is given to run. Each has its marker among its arguments, by which
// processes.mjs finds it and whatever it has started.
const sh = (script, marker) => ({ command: 'sh', args: ['-c', script, marker] });

// talking prints "line 0", "line 1", ... five times a second.
export const talking = (marker, seconds) =>
  sh(`i=0; while [ $i -lt ${5 * seconds} ]; do echo "line $i"; i=$((i+1)); sleep 0.2; done`, marker);

// silent says one word, and then nothing for longer than any test lasts, in a process of
// its own.
export const silent = (marker) => sh(`echo started; sleep ${marker}; echo not reached`, marker);

// counting prints tag:0 to tag:9.
export const counting = (tag, marker) =>
  sh(`i=0; while [ $i -lt 10 ]; do echo "${tag}:$i"; i=$((i+1)); sleep 0.2; done`, marker);
