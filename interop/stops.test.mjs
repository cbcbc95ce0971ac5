// What the server stops by itself, and what a client gets then: SPEC 3.1, 3.2, 3.9, 6.4,
// 7.5 to 7.9.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { silent } from './lib/commands.mjs';
import { each } from './lib/each.mjs';
import { gone, unique } from './lib/processes.mjs';

const outcomeKey = 'io.github.tooldeadline/outcome';
const idleText = (s) => `No progress for ${s}s (idle timeout). Tool should call heartbeat() during long work.`;
const totalText = (s) => `Tool exceeded wall-clock limit of ${s}s.`;
const noAnswerText = 'Command timed out waiting for approval. Consider approving faster or configuring a longer timeout.';

each('stops', {
  async 'a tool that is silent for too long'(t, driver, connect) {
    const client = await connect({ env: { MCP_IDLE_TIMEOUT: '1' } });
    const result = await client.call('hang', {});
    stopped(result, idleText(1), { kind: 'idle', exitCode: 124, limitMs: 1000, idleMs: 1000 });
  },

  async 'a command that takes too long, with what it had printed'(t, driver, connect) {
    const client = await connect();
    const marker = unique();
    const result = await client.call('run_command', { ...silent(marker), timeoutMs: 1500 });
    stopped(result, `sh process timed out after 1500ms.\n\nPartial output:\nstarted\n`, { kind: 'total', exitCode: 124, limitMs: 1500, totalMs: 1500 });
    await gone(marker);
  },

  async 'a tool that does not listen'(t, driver, connect) {
    // Its limit, and the grace of 2 s that the example gives it; not the 40 s it takes.
    const client = await connect({ env: { MCP_IDLE_TIMEOUT: '1' } });
    const began = Date.now();
    const result = await client.call('deaf', { seconds: 40 });
    const took = Date.now() - began;
    assert.ok(took >= 3000 && took < 20_000, `${took} ms`);
    stopped(result, idleText(1), { kind: 'idle', exitCode: 124, abandoned: true });
  },

  async 'a person who answers'(t, driver, connect) {
    const answers = [{ action: 'accept', content: { approve: true } }, { action: 'decline' }];
    const asked = [];
    const client = await connect({ elicit: async (req) => (asked.push(req.params.message), answers.shift()) });
    assert.equal((await client.call('approve', { action: 'rm -r build' })).content[0].text, 'Approved: rm -r build');
    assert.equal((await client.call('approve', { action: 'rm -r src' })).content[0].text, 'Denied: rm -r src');
    assert.deepEqual(asked, ['rm -r build', 'rm -r src']);
  },

  async 'a person who is late'(t, driver, connect) {
    // Before 2026-07-28 the server waits, and gives up after 1 s; since then the client
    // does, and the server sees from the answer that it is late.
    let answered = false;
    const client = await connect({
      args: ['-approval-limit', '1s'],
      async elicit() {
        await sleep(4000);
        answered = true;
        return { action: 'accept', content: { approve: true } };
      },
    });
    const updates = [];
    const result = await client.call('approve', { action: 'rm -r build' }, { onprogress: (p) => updates.push(p) });
    assert.equal(answered, driver.protocol === '2026-07-28');
    stopped(result, noAnswerText, { kind: 'total', exitCode: 124, limitMs: 1000 });
    if (!answered) assert.match(updates[0].message, /^Waiting for approval of rm -r build/);
  },
});

function stopped(result, text, outcome) {
  assert.equal(result.isError, true);
  assert.equal(result.content.map((c) => c.text).join('\n\n'), text);
  const got = result._meta?.[outcomeKey];
  assert.ok(got, JSON.stringify(result));
  for (const [key, value] of Object.entries(outcome)) assert.equal(got[key], value, `${key} of ${JSON.stringify(got)}`);
}
