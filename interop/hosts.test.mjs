// The parts of "make hosts" that need no host: the scripted model in all its interfaces, the record of a
// case and the tables. SPEC 16.6.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import { startModel } from './hosts/model.mjs';
import { goSource, readRecords, render, source, verdict } from './hosts/render.mjs';

const script = [{ tool: 'slow', args: { seconds: 1 } }, { tool: 'echo', args: { text: 'hi' } }];
const names = ['mcp__lab__slow', 'mcp__lab__echo', 'mcp__lab__wait_for_result'];
const answers = ['Still running after 5s.\nCall wait_for_result with {"id": "slow.A"} to wait for the result.', 'finished after 14 seconds', 'echo: hi'];
const wanted = [
  ['mcp__lab__slow', { seconds: 1 }],
  ['mcp__lab__wait_for_result', { id: 'slow.A' }],
  ['mcp__lab__echo', { text: 'hi' }],
];

// An interface: where requests go, and a host as far as the model notices it. add puts a call and its
// result into the request; call takes the call from a whole reply, and streamed from the events of one.
const interfaces = {
  'chat completions': {
    path: '/v1/chat/completions',
    request: (stream) => ({ model: 'm', stream, messages: [{ role: 'user', content: 'go' }], tools: names.map((name) => ({ type: 'function', function: { name } })) }),
    call: ({ choices: [{ message }] }) => message.tool_calls?.map(({ id, function: f }) => ({ id, name: f.name, args: JSON.parse(f.arguments) }))[0],
    streamed: (events) => events.flatMap((e) => e.choices?.[0]?.delta.tool_calls ?? []).map(({ id, function: f }) => ({ id, name: f.name, args: JSON.parse(f.arguments) }))[0],
    add: (body, call, text) => body.messages.push({ role: 'assistant', tool_calls: [] }, { role: 'tool', tool_call_id: call.id, content: [{ type: 'text', text }] }),
  },
  responses: {
    path: '/v1/responses',
    request: (stream) => ({ model: 'm', stream, input: [], tools: [{ type: 'namespace', name: 'mcp__lab', tools: names.map((name) => ({ type: 'function', name })) }] }),
    call: ({ output: [item] }) => (item.type === 'function_call' ? { id: item.call_id, name: item.name, space: item.namespace, args: JSON.parse(item.arguments) } : undefined),
    streamed(events) { return this.call(events.find((e) => e.type === 'response.completed').response); },
    add: (body, call, output) => body.input.push({ type: 'function_call', call_id: call.id }, { type: 'function_call_output', call_id: call.id, output }),
  },
  gemini: {
    path: (stream) => `/v1beta/models/m:${stream ? 'streamGenerateContent' : 'generateContent'}`,
    request: () => ({ contents: [], tools: [{ functionDeclarations: names.map((name) => ({ name })) }] }),
    call: ({ candidates: [{ content: { parts: [part] } }] }) => part.functionCall,
    streamed(events) { return this.call(events[0]); },
    add: (body, call, output) => body.contents.push({ role: 'user', parts: [{ functionResponse: { id: call.id, name: call.name, response: { output } } }] }),
  },
};

for (const [name, i] of Object.entries(interfaces)) {
  for (const stream of [false, true]) {
    test(`the model follows its script: ${name}, ${stream ? 'streamed' : 'whole'}`, async () => {
      const model = await startModel(script);
      const path = typeof i.path === 'function' ? i.path(stream) : i.path;
      const ask = async (body) => {
        const response = await fetch(model.url + path, { method: 'POST', body: JSON.stringify(body) });
        assert.equal(response.status, 200);
        if (!stream) return i.call(await response.json());
        const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
        return i.streamed(lines.map((line) => JSON.parse(line.slice(6))));
      };
      const body = i.request(stream);
      for (const [n, [tool, args]] of wanted.entries()) {
        const call = await ask(body);
        assert.deepEqual([call.name, call.args], [tool, args]);
        assert.deepEqual(await ask(body), call, 'a request that is sent again gets the same reply');
        i.add(body, call, answers[n]);
      }
      assert.equal(await ask(body), undefined, 'no further call');
      await model.stop();
      assert.deepEqual(model.calls.map((c) => [c.tool, c.waited, c.text]), [['slow', false, answers[0]], ['wait_for_result', true, answers[1]], ['echo', false, answers[2]]]);
      assert.ok(model.done);
    });
  }
}

test('a request without tools is answered, and not recorded', async () => {
  const model = await startModel(script);
  const response = await fetch(`${model.url}/v1/chat/completions`, { method: 'POST', body: '{"messages": []}' });
  assert.equal((await response.json()).choices[0].message.content, 'Scripted.');
  await model.stop();
  assert.deepEqual(model.calls, []);
});

test('what became of a case', () => {
  const call = (tool, seconds, text, more) => ({ tool, seconds, text, ...more });
  const of = (name, calls, more) => verdict({ case: name, setup: 'bare', calls, served: [], left: [], ended: 0, ...more });
  const echo = call('echo', 0.1, 'echo: afterwards');
  for (const [got, want] of [
    [of('silent', [call('slow', 8.1, 'timed out'), echo]), 'lost after 8.1 s'],
    [of('silent', [call('slow', 8.1, 'timed out')], { served: ['slow', 'slow'] }), 'lost after 8.1 s; called 2 times'],
    [of('silent', [call('slow', 6.1, 'Tool exceeded wall-clock limit of 6s.'), echo]), 'told after 6.1 s'],
    [of('usual', [call('slow', 300.3, "AbortError: MCP tool 'slow' on server 'lab' did not respond within 300000ms idle timeout"), echo]), 'lost after 300.3 s'],
    [of('silent', [call('slow', 5, 'Still running'), call('wait_for_result', 4, 'finished after 14 seconds', { waited: true }), echo]), 'arrives'],
    [of('deaf', [call('deaf', 8, 'timed out'), call('echo', 8, 'timed out')]), 'lost after 8 s; then fails'],
    [of('deaf', [call('deaf', 8, 'timed out'), call('echo', 5, 'Still running'), call('wait_for_result', 1, 'echo: afterwards', { waited: true })]), 'lost after 8 s; then works'],
    [of('crash', [call('crash', 0.1, 'Connection closed'), call('echo', 0, '(no such tool is offered)')]), 'an error; then fails'],
    [of('sample', [call('sample', 8.2, 'timed out')]), 'lost after 8.2 s'],
    [of('sample', [call('sample', 6.5, 'Tool exceeded wall-clock limit of 6s.')]), 'told after 6.5 s'],
    [of('sample', [call('sample', 1, 'the model: {}')]), 'answered after 1 s'],
    [of('child', [call('child', 8, 'timed out')], { left: ['child', 'host'] }), 'lost after 8 s; left: the process'],
    [of('two', [
      call('slow', 5, 'Still running'), call('wait_for_result', 4, 'finished after 8 seconds', { waited: true }),
      call('run_command', 5, 'Still running'), call('wait_for_result', 0, 'The id "a" is unknown: no call has it.', { waited: true }),
    ]), 'arrives; then lost, the wrong server is asked'],
    [of('killed', [call('child', null)], { ended: 'killed', left: ['child', 'server'] }), 'left: the process, the server'],
    [of('killed', [], { ended: 0 }), 'not run'],
    [of('silent', []), 'not run'],
  ]) assert.equal(got, want);
});

test('docs/hosts.md and package hosts have what was measured', async () => {
  const page = await readFile(new URL('../docs/hosts.md', import.meta.url), 'utf8');
  assert.equal(render(page, readRecords()), page, 'run: node interop/hosts/render.mjs');
  assert.equal(goSource(readRecords()), await readFile(source, 'utf8'), 'run: node interop/hosts/render.mjs');
});
