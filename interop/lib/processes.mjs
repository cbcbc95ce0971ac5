// Processes, looked up by what stands in their arguments, so that nothing is ever killed by
// a name that somebody else's process may have too.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

let count = 0;

// unique gives a number that no other process has among its arguments, and that sleep(1)
// takes for some 1000 seconds.
export const unique = () => `1000.${process.pid}${String(++count).padStart(4, '0')}`;

// having gives the processes with text among their arguments: [{ pid, args }].
export function having(text) {
  return list().filter(({ pid, args }) => pid !== process.pid && args.includes(text));
}

function list() {
  if (!existsSync('/proc/self/cmdline')) {
    return execFileSync('ps', ['-A', '-o', 'pid=,args='], { encoding: 'utf8' })
      .split('\n')
      .map((line) => ({ pid: parseInt(line, 10), args: line }));
  }
  const all = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      all.push({ pid: Number(name), args: readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ') });
    } catch {
      // ended meanwhile
    }
  }
  return all;
}

// until waits for check to give something, and fails when it has not within the bound. The
// bound is for a busy machine: nothing here says that something is fast.
export async function until(what, check, seconds = 20) {
  const deadline = Date.now() + 1000 * seconds;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`after ${seconds} s still waiting for ${what}`);
    await sleep(20);
  }
}

// started waits for a process with text among its arguments, and gone for the last to end.
export const started = (text) => until(`a process with ${text}`, () => having(text).length > 0);

export const gone = (text, seconds) =>
  until(`the end of ${having(text).map((p) => `${p.pid} (${p.args})`).join(', ') || text}`, () => having(text).length === 0, seconds);
