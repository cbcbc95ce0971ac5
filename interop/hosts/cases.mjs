// What is asked of each host, and before which server.

// Seconds. A host's own limit is set to hostLimit where it can be.
export const hostLimit = 8;
const total = 6;
const soft = 5;
const often = 1; // so that the model has to wait about ten times

// What takes longer than a host with this limit waits, and the total with soft, which is longer still.
export const longer = (limit) => limit + 6;
const most = (limit) => limit + 12;

const after = { tool: 'echo', args: { text: 'afterwards' } };
const slow = (seconds, progress) => ({ tool: 'slow', args: { seconds, progress } });
const run = (command) => ({ tool: 'run_command', args: { command: 'sh', args: ['-c', command] } });

// A case is the script of the model before the server of server.mjs; go is that before examples/mcpserver,
// which has other tools. Both depend on { mark, long }. In a case that is usual, the host has the limit that it has if nobody has
// set one, and long is longer than that. In a case with kill, the host is killed as soon as the server has noted its call.
// One with second has another server, behind a proxy of its own.
export const cases = {
  silent: { title: 'a silent call, longer than the limit', script: ({ long }) => [slow(long, false), after], go: ({ long }) => [run(`sleep ${long}; echo finished`)] },
  usual: { title: 'the same with the usual limit of the host', usual: true, setups: ['bare', 'flagless'], script: ({ long }) => [slow(long, false), after] },
  progress: { title: 'the first with progress', script: ({ long }) => [slow(long, true), after], go: ({ long }) => [run(`for i in $(seq ${long}); do sleep 1; echo second $i; done; echo finished`)] },
  hang: { title: 'a call that never ends, then another', script: () => [{ tool: 'hang' }, after], go: () => [{ tool: 'hang' }] },
  deaf: { title: 'a call that blocks the server, then another', script: () => [{ tool: 'deaf' }, after], go: () => [{ tool: 'deaf', args: { seconds: 600 } }] },
  crash: { title: 'a call that ends the server, then another', script: () => [{ tool: 'crash' }, after] },
  child: { title: 'a call that starts a process and never ends', script: () => [{ tool: 'child' }], go: ({ mark }) => [run(`sleep ${mark} & sleep ${mark}`)] },
  ask: { title: 'a question to the person', script: () => [{ tool: 'ask' }], go: () => [{ tool: 'approve', args: { action: 'remove it' } }] },
  sample: { title: 'a question to the model', script: () => [{ tool: 'sample' }] },
  noise: { title: 'noise on stdout before the answer, then another call', script: () => [{ tool: 'noise' }, after] },
  two: {
    title: 'a long call of each of two servers, of a host that does not prefix names', setups: ['soft', 'plain'], plain: true,
    script: () => [slow(8, false), run('sleep 8; echo finished')], second: ({ bin, home }) => [`${bin}/mcpserver`, '-config', `${home}/limits.json`],
  },
  killed: { title: 'the host is killed during such a call', script: () => [{ tool: 'child' }], go: ({ mark }) => [run(`sleep ${mark} & sleep ${mark}`)], kill: true },
};

// A setup is the command of the server, as a host's configuration has it. It may be for one case only.
export const setups = {
  bare: { title: 'bare', command: (server) => server },
  proxy: { title: `mcpdeadline -total ${total}s -grace 1s -ping 1s`, command: (server, { bin }) => [`${bin}/mcpdeadline`, '-total', `${total}s`, '-grace', '1s', '-ping', '1s', '--', ...server] },
  named: {
    title: 'mcpdeadline -host NAME=LIMIT', only: 'silent',
    command: (server, { bin, limit, endless, known }) => known && [`${bin}/mcpdeadline`, '-host', endless ? known : `${known}=${limit}s`, '--', ...server],
  },
  flagless: { title: 'mcpdeadline', only: 'usual', command: (server, { bin }) => [`${bin}/mcpdeadline`, '--', ...server] },
  soft: { title: `mcpdeadline -soft ${soft}s`, command: (server, { bin, limit }) => [`${bin}/mcpdeadline`, '-soft', `${soft}s`, '-total', `${most(limit)}s`, '--', ...server] },
  often: {
    title: `mcpdeadline -soft ${often}s`, only: 'silent',
    command: (server, { bin, limit }) => [`${bin}/mcpdeadline`, '-soft', `${often}s`, '-total', `${most(limit)}s`, '--', ...server],
  },
  plain: {
    title: `mcpdeadline -host NAME -soft ${soft}s`, only: 'two',
    command: (server, { bin, known }) => [`${bin}/mcpdeadline`, '-host', known, '-soft', `${soft}s`, '--', ...server],
  },
  go: {
    title: `examples/mcpserver -tasks ${soft}s -continue ${soft}s`, go: true,
    command: (_, { bin, home }) => [`${bin}/mcpserver`, '-config', `${home}/limits.json`, '-progress-interval', '1s', '-tasks', `${soft}s`, '-continue', `${soft}s`],
  },
  'go-often': {
    title: `examples/mcpserver -continue ${often}s`, go: true, only: 'silent',
    command: (_, { bin, home }) => [`${bin}/mcpserver`, '-config', `${home}/limits.json`, '-continue', `${often}s`],
  },
};

// What setup go reads with -config, so that a command that hangs ends while the model still asks for it.
export const goLimits = (limit) => ({ mcp: { tools: { run_command: { timeout: most(limit), idle_timeout: longer(limit) + 3 } } } });
