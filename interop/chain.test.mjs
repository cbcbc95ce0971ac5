// A chain of host, proxy, server, a client in a command, a second proxy and server, and their command, each with limits of
// its own. SPEC 18.1, 18.4: the innermost that is due is stopped first, and each level answers with what it has.
import assert from 'node:assert/strict';
import test from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { silent } from './lib/commands.mjs';
import { gone, unique } from './lib/processes.mjs';
import { behind, exampleOverStdio, mcpclient } from './lib/servers.mjs';

const budget = 'io.github.tooldeadline/budget';

async function ask(t, args, leftMs) {
  const client = new Client({ name: 'tooldeadline-interop', version: '1' });
  await client.connect(new StdioClientTransport({ ...behind(exampleOverStdio()), stderr: 'ignore' }));
  t.after(() => client.close());
  const begun = performance.now();
  const result = await client.callTool({ name: 'run_command', arguments: args, _meta: { [budget]: { leftMs } } });
  return { text: result.content.map((c) => c.text).join('\n'), outcome: result._meta?.['io.github.tooldeadline/outcome'], took: performance.now() - begun };
}

test('the nested command is due first', async (t) => {
  const marker = unique();
  const inner = behind(exampleOverStdio());
  const { text, took } = await ask(t, mcpclient(['-timeout', '3s', '-reset-on-progress=false'], 'run_command', silent(marker), inner), 60_000);
  // The client gives the nested proxy 3 s, which answers within 2.5 s, and the nested server within 2.08 s.
  assert.match(text, /started/);
  assert.match(text, /wall-clock limit of 2\.\d+s|timed out after 2\d\d\d(\.\d+)?ms/);
  assert.match(text, /exit code 124/i);
  assert.ok(took >= 2000 && took < 60_000, `${took} ms`);
  await gone(marker);
});

test('the command of the first server is due first', async (t) => {
  const marker = unique();
  const inner = behind(exampleOverStdio());
  const { text, outcome, took } = await ask(t, mcpclient(['-timeout', '0'], 'run_command', silent(marker), inner), 12_000);
  // The proxy answers within 10 s, and its server within 8.33 s.
  assert.equal(outcome.kind, 'total');
  assert.match(text, /timed out after 8\d\d\d(\.\d+)?ms|wall-clock limit of 8\.\d+s/);
  assert.ok(took >= 8000 && took < 60_000, `${took} ms`);
  await gone(marker);
});
