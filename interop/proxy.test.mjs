// cmd/mcpdeadline in front of servers that nobody here wrote, from proxied/ and from the SDKs for
// Go: a client sees no difference but what the proxy is for. SPEC 3, 6.6, 7.7, 12.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { gone, having, until } from './lib/processes.mjs';
import { behind, conformance, everything, proxied as server, proxyOverHTTP } from './lib/servers.mjs';
import { verdicts } from './lib/verdicts.mjs';

async function connect(t, params) {
  const client = new Client({ name: 'tooldeadline-interop', version: '1' }, { capabilities: { elicitation: {}, sampling: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'decline' }));
  client.setRequestHandler(CreateMessageRequestSchema, async () => ({ model: 'm', role: 'assistant', content: { type: 'text', text: 'sampled' } }));
  const transport = new StdioClientTransport({ ...params, stderr: 'ignore' });
  await client.connect(transport);
  t.after(() => client.close());
  return Object.assign(client, { pid: transport.pid });
}

const call = (client, name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options);

async function directory(t) {
  const dir = await mkdtemp(join(tmpdir(), 'interop-proxied-'));
  t.after(() => rm(dir, { recursive: true }));
  return dir;
}

// settled is what came of it, be it an error.
const settled = (promise) => promise.then((result) => ({ result }), (error) => ({ code: error.code, message: error.message }));

// look is all that a server shows of itself, and what it answers.
async function look(client, calls) {
  const seen = {
    capabilities: client.getServerCapabilities(), version: client.getServerVersion(), instructions: client.getInstructions(),
    tools: await settled(client.listTools()), resources: await settled(client.listResources()),
    templates: await settled(client.listResourceTemplates()), prompts: await settled(client.listPrompts()),
    unknown: await settled(call(client, 'no such tool')),
  };
  const first = seen.resources.result?.resources[0];
  if (first) seen.read = await settled(client.readResource({ uri: first.uri }));
  seen.calls = [];
  for (const [name, args] of calls) {
    const progress = [];
    // Without the last, which the server sends right before its answer: the client drops one that
    // it reads together with that.
    const onprogress = (p) => p.progress < (p.total ?? Infinity) && progress.push(p);
    const res = await settled(call(client, name, args, { onprogress }));
    seen.calls.push({ name, ...res, progress });
  }
  return seen;
}

// alike compares a server with the proxied server, on a directory of its own each.
async function alike(t, servers, calls) {
  const seen = [];
  for (const params of [servers(await directory(t)), behind(servers(await directory(t)), '-declare=false')]) {
    const dir = params.args.findLast((a) => a.startsWith(tmpdir())) ?? params.env?.MEMORY_FILE_PATH;
    const text = JSON.stringify(await look(await connect(t, params), calls(dir)));
    seen.push(JSON.parse(text.replaceAll(/interop-proxied-\w+/g, 'DIR').replaceAll(/"(timestamp|lastModified)":"[^"]*"/g, '"$1":""')));
  }
  assert.deepEqual(seen[1], seen[0]);
  return seen[1];
}

// SPEC 16.3. Bare, the client loses each message that is glued behind text.
test('a server that prints more than messages', async (t) => {
  const script = `
    const noise = ['this is no JSON\\n', '\\ufeff', '\\x1b[31mred\\x1b[0m: x\\n', '{"level":"info"}\\n', 'Processing... ', '\\x1b[32mdone\\x1b[0m'];
    process.stdout.write('Welcome!\\nLoading... ');
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined) return;
      const result = method === 'initialize'
        ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'noisy', version: '1' } }
        : { content: [{ type: 'text', text: 'there' }] };
      process.stdout.write(noise[params?.arguments?.n] ?? '');
      process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
    });`;
  const client = await connect(t, behind({ command: process.execPath, args: ['-e', script] }));
  const errors = [];
  client.onerror = (error) => errors.push(error);
  for (let n = 0; n < 6; n++) assert.equal((await call(client, 'x', { n }, { timeout: 10_000 })).content[0].text, 'there', `noise ${n}`);
  assert.deepEqual(errors, []);
});

test('server-everything', async (t) => {
  const seen = await alike(t, () => server('everything'), () => [
    ['echo', { message: 'é' }], ['get-sum', { a: 1, b: 2 }], ['get-sum', { a: 'x' }],
    ['get-structured-content', { location: 'Chicago' }], ['get-tiny-image', {}], ['get-resource-links', { count: 2 }],
    ['trigger-sampling-request', { prompt: 'p', maxTokens: 5 }], ['trigger-elicitation-request', {}],
    ['trigger-long-running-operation', { duration: 2, steps: 4 }],
  ]);
  assert.ok(seen.calls.at(-1).progress.length >= 3, JSON.stringify(seen.calls.at(-1)));
  assert.match(JSON.stringify(seen.calls.at(-3)), /sampled/);
});

test('server-filesystem', async (t) => {
  await alike(t, (dir) => server('filesystem', dir), (dir) => [
    ['write_file', { path: `${dir}/a.txt`, content: 'one\ntwo\n' }], ['read_text_file', { path: `${dir}/a.txt`, tail: 1 }],
    ['list_directory', { path: dir }], ['read_text_file', { path: '/etc/passwd' }], ['search_files', { path: dir, pattern: '**/*.txt' }],
  ]);
});

test('server-memory', async (t) => {
  await alike(t, (dir) => ({ ...server('memory'), env: { ...process.env, MEMORY_FILE_PATH: `${dir}/memory.json` } }), () => [
    ['create_entities', { entities: [{ name: 'a', entityType: 'b', observations: ['c'] }] }], ['read_graph', {}], ['search_nodes', { query: 'a' }],
  ]);
});

test('everything of the Go SDK', async (t) => {
  const seen = await alike(t, () => everything('go-sdk'), () => [
    ['greet', { name: 'é' }], ['greet (structured)', { name: 'x' }], ['greet (content with ResourceLink)', { name: 'x' }], ['greet', {}],
    ['ping', {}], ['log', {}], ['sample', {}], ['roots', {}],
  ]);
  assert.equal(seen.calls[0].result.content[0].text, 'Hi é');
  // This tool ends the server where nobody answers its question.
  const client = await connect(t, behind(everything('go-sdk')));
  const res = await call(client, 'elicit (form)');
  assert.ok(res.isError);
  assert.match(res.content[0].text, /^the server ended: exit status 2\n[^]*panic: /);
  assert.equal((await call(client, 'greet', { name: 'again' })).content[0].text, 'Hi again');
});

test('everything of mcp-go', async (t) => {
  const seen = await alike(t, () => everything('mcp-go'), () => [
    ['echo', { message: 'é' }], ['add', { a: 1, b: 2 }], ['add', { a: 'x' }], ['getTinyImage', {}], ['get_resource_link', {}],
    ['longRunningOperation', { duration: 1, steps: 4 }],
  ]);
  assert.ok(seen.calls.at(-1).progress.length >= 3, JSON.stringify(seen.calls.at(-1)));
});

test('a tool that a server runs as a task of its own', async (t) => {
  const client = await connect(t, behind(server('everything'), '-soft', '1s'));
  await client.listTools();
  const seen = [];
  for await (const m of client.experimental.tasks.callToolStream(
    { name: 'simulate-research-query', arguments: { topic: 'x' } }, CallToolResultSchema, { task: { ttl: 60_000 } })) seen.push(m);
  assert.equal(seen[0].type, 'taskCreated');
  assert.equal(seen.at(-1).type, 'result', JSON.stringify(seen.at(-1)));
});

test('a tool that takes too long is answered on time', async (t) => {
  const client = await connect(t, behind(server('everything'), '-total', '2s'));
  const res = await call(client, 'trigger-long-running-operation', { duration: 60, steps: 2 });
  assert.ok(res.isError);
  assert.match(res.content[0].text, /^Tool exceeded wall-clock limit of 2s\./);
  assert.equal(res._meta['io.github.tooldeadline/outcome'].kind, 'total');
  assert.match((await call(client, 'echo', { message: 'there' })).content[0].text, /there/);
});

test('a tool of 20 s in a client that waits for 8', async (t) => {
  const slow = ['trigger-long-running-operation', { duration: 20, steps: 4 }, { timeout: 8000 }];
  const bare = await connect(t, server('everything'));
  const lost = assert.rejects(call(bare, ...slow), { code: -32001 });
  const client = await connect(t, behind(server('everything'), '-soft', '2s'));
  let res = await call(client, ...slow);
  assert.match(res.content[0].text, /^Still running after 2s\./);
  const { id, tool } = res._meta['io.github.tooldeadline/continuation'];
  for (let i = 0; res._meta?.['io.github.tooldeadline/continuation'] && i < 100; i++) res = await call(client, tool, { id }, { timeout: 8000 });
  assert.match(res.content[0].text, /^Long running operation completed\. Duration: 20 seconds, Steps: 4\./);
  await lost;
});

test('a server that is stopped is started again', async (t) => {
  const dir = await directory(t);
  await writeFile(`${dir}/a.txt`, 'text');
  const client = await connect(t, behind(server('filesystem', dir), '-idle', '2s', '-grace', '1s', '-ping', '1s'));
  assert.equal((await call(client, 'read_text_file', { path: `${dir}/a.txt` })).content[0].text, 'text');
  const [{ pid }] = having(dir).filter(({ args }) => /^\S*node /.test(args));
  process.kill(pid, 'SIGSTOP');
  const res = await call(client, 'read_text_file', { path: `${dir}/a.txt` });
  assert.match(res.content[0].text, /^No progress for 2s/);
  let again;
  for (let i = 0; i < 20; i++) {
    again = await call(client, 'read_text_file', { path: `${dir}/a.txt` });
    if (!again.isError) break;
  }
  assert.equal(again.content[0].text, 'text');
});

test('nothing is left when the proxy is killed', async (t) => {
  const dir = await directory(t);
  const client = await connect(t, behind(server('filesystem', dir)));
  await client.listTools();
  process.kill(client.pid, 'SIGKILL');
  await gone(dir);
});

test('the conformance runner', async (t) => {
  const bare = await verdicts(t, conformance('-bare'));
  const origin = await conformance('-bare');
  t.after(() => origin.stop());
  const proxied = await verdicts(t, proxyOverHTTP(['-declare=false', '-url', origin.url]));
  assert.ok(bare.size > 20);
  // INFO is what the runner has seen on the way, and no verdict.
  const judged = (checks) => checks?.filter(([, status]) => status !== 'INFO');
  for (const [name, checks] of bare) await t.test(name, () => assert.deepEqual(judged(proxied.get(name)), judged(checks)));
});
