// By hand: what -hibernate saves with the servers of the MCP project, and what waking costs.
// "node sleep.mjs" after "npm ci" here and in proxied/; INTEROP_BIN is the directory with mcpdeadline. Linux.
import { readdirSync, readFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { behind } from './lib/servers.mjs';

const proxied = fileURLToPath(new URL('proxied/', import.meta.url));
const servers = {
  filesystem: { args: [tmpdir()], call: ['list_directory', { path: tmpdir() }] },
  everything: { args: [], call: ['echo', { message: 'x' }] },
  memory: { args: [], call: ['read_graph', {}] },
};

// below returns a process and all that it has started.
function below(root) {
  const parents = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      parents.set(+pid, +stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    } catch {} // it has ended
  }
  const all = [root];
  for (let i = 0; i < all.length; i++) for (const [pid, parent] of parents) if (parent === all[i]) all.push(pid);
  return all;
}

// memory returns the MB that processes have, and that they have to themselves.
function memory(pids) {
  let rss = 0;
  let own = 0;
  for (const pid of pids) {
    try {
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
      const kb = (key) => +rollup.match(new RegExp(`^${key}: +(\\d+)`, 'm'))[1];
      rss += kb('Rss');
      own += kb('Private_Clean') + kb('Private_Dirty');
    } catch {}
  }
  return `${Math.round(rss / 1024)} / ${Math.round(own / 1024)}`;
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

console.log(`node ${process.version}, load ${loadavg()[0].toFixed(1)}`);
console.log('server | started by | awake, MB (own) | asleep | a call that wakes it, ms, median of 5 (most) | start to first answer without the proxy, ms | load');
for (const [name, { args, call }] of Object.entries(servers)) {
  const bin = `${proxied}node_modules/@modelcontextprotocol/server-${name}/dist/index.js`;
  for (const [by, params] of [['node', { command: process.execPath, args: [bin, ...args] }],
    ['npx', { command: 'npx', args: ['--prefix', proxied, '--no-install', `mcp-server-${name}`, ...args] }]]) {
    const client = new Client({ name: 'sleep', version: '1' });
    const transport = new StdioClientTransport({ ...behind(params, '-hibernate', '1s'), stderr: 'pipe' });
    let asleep = 0;
    transport.stderr.on('data', (data) => { asleep += `${data}`.split('server asleep').length - 1; });
    await client.connect(transport);
    await client.listTools();
    await client.callTool({ name: call[0], arguments: call[1] });
    const awake = memory(below(transport.pid));
    let sleeping;
    const times = [];
    for (let n = 1; n <= 5; n++) {
      while (asleep < n) await sleep(50);
      await sleep(200);
      sleeping ??= memory(below(transport.pid));
      const begun = performance.now();
      await client.callTool({ name: call[0], arguments: call[1] });
      times.push(performance.now() - begun);
    }
    const starts = [];
    for (let n = 0; n < 5; n++) {
      const bare = new Client({ name: 'sleep', version: '1' });
      const begun = performance.now();
      await bare.connect(new StdioClientTransport({ ...params, stderr: 'ignore' }));
      await bare.callTool({ name: call[0], arguments: call[1] });
      starts.push(performance.now() - begun);
      await bare.close();
    }
    console.log([name, by, awake, sleeping, `${Math.round(median(times))} (${Math.round(Math.max(...times))})`, Math.round(median(starts)), loadavg()[0].toFixed(1)].join(' | '));
    await client.close();
  }
}
