// The processes of the namespace in which the hosts run, by /proc.
import { readFileSync, readdirSync } from 'node:fs';

// list gives the processes that are no zombies: { pid, parent, args }.
export function list() {
  const all = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const [state, parent] = readFileSync(`/proc/${name}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ');
      const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').slice(0, -1);
      if (state !== 'Z' && args.length > 0) all.push({ pid: Number(name), parent: Number(parent), args });
    } catch {
      // ended meanwhile
    }
  }
  return all;
}

// above gives the processes from pid up to, and without, top.
export function above(pid, top, all = list()) {
  const chain = [];
  for (let p = all.find((q) => q.pid === pid); p && p.pid !== top; p = all.find((q) => q.pid === p.parent)) chain.push(p);
  return chain;
}

// role says what a process is to a case whose processes have mark among their arguments.
export function role({ args }, mark) {
  if (!args.some((arg) => arg.includes(mark))) return /mcpdeadline$|mcpserver$/.test(args[0]) ? 'proxy' : 'host';
  if (/sleep$/.test(args[0])) return 'child';
  return /mcpdeadline$/.test(args[0]) ? 'proxy' : 'server';
}
