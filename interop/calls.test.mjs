// A client's own limits, and its cancellation: what the server's progress does for them, and
// that nothing is left running. SPEC 7.1 to 7.4, 8.1, 8.2, 3.11, 6.1, 6.6.
import assert from 'node:assert/strict';
import { counting, silent, talking } from './lib/commands.mjs';
import { each } from './lib/each.mjs';
import { gone, started, unique } from './lib/processes.mjs';

// The client waits for this long without progress. The server sends some ten times a second.
const timeout = 2000;

each('calls', {
  async 'progress keeps a call alive, several times over'(t, driver, connect) {
    const client = await connect();
    const marker = unique();
    const updates = [];
    const began = Date.now();
    const result = await client.call('run_command', talking(marker, 7),
      { timeout, resetTimeoutOnProgress: true, onprogress: (p) => updates.push(p) });
    assert.ok(Date.now() - began > 3 * timeout);
    assert.ok(!result.isError);
    assert.match(result.content[0].text, /^exit code: 0\n\nline 0\n(line \d+\n)*line 34\n$/);
    assert.ok(updates.length >= 5, `${updates.length} updates`);
    increasing(updates);
    assert.ok(updates.some((u) => /^line \d+$/.test(u.message)));

  },

  async 'nothing follows the result'(t, driver, connect) {
    // The tool reports until it ends, so a notification is often on its way then.
    const client = await connect({ args: ['-progress-interval', '1ms'] });
    for (let i = 0; i < 200; i++) {
      await client.call('search', { root: 'lib', pattern: '^$^' }, { onprogress() {} });
    }
    await client.call('run_command', counting('later', unique()));
    const answered = new Set();
    let seen = 0;
    for (const { to, message } of client.wire) {
      if (to !== 'client') continue;
      if (message.result) answered.add(message.id);
      if (message.method !== 'notifications/progress') continue;
      seen++;
      assert.ok(!answered.has(message.params.progressToken), JSON.stringify(message));
    }
    assert.ok(answered.size > 200 && seen > 0, `${seen} notifications of ${answered.size} calls`);
  },

  async 'maxTotalTimeout ends a call that makes progress'(t, driver, connect) {
    // The clients tell the server nothing when this limit expires, or late: see sdk.test.mjs.
    // It is the server's own that stops the tool for sure.
    const client = await connect({ env: { MCP_TIMEOUT: '8' } });
    const marker = unique();
    const call = client.call('run_command', talking(marker, 60),
      { timeout, resetTimeoutOnProgress: true, maxTotalTimeout: 2 * timeout, onprogress() {} });
    await assert.rejects(call, { code: driver.timedOut, message: /Maximum total timeout exceeded$/ });
    await gone(marker);
  },

  async 'without resetTimeoutOnProgress, progress changes nothing'(t, driver, connect) {
    const client = await connect();
    const marker = unique();
    const updates = [];
    const call = client.call('run_command', talking(marker, 60), { timeout, onprogress: (p) => updates.push(p) });
    await assert.rejects(call, { code: driver.timedOut, message: /Request timed out$/, data: { timeout } });
    assert.ok(updates.length > 0);
    await gone(marker);
  },

  async 'an aborted call leaves no process'(t, driver, connect) {
    const client = await connect();
    const marker = unique();
    const aborter = new AbortController();
    const call = client.call('run_command', silent(marker), { signal: aborter.signal });
    await started(`sleep ${marker}`);
    aborter.abort('enough');
    await assert.rejects(call, /enough/);
    await gone(marker);
    // Over HTTP, 2026-07-28 cancels by closing the stream.
    const silently = driver.transport === 'http' && driver.protocol === '2026-07-28';
    assert.equal(client.sent('notifications/cancelled').length, silently ? 0 : 1);
  },

  async 'five calls at once have their own progress'(t, driver, connect) {
    const client = await connect();
    const calls = [0, 1, 2, 3, 4].map(async (n) => {
      const updates = [];
      const result = await client.call('run_command', counting(`call${n}`, unique()), { onprogress: (p) => updates.push(p) });
      assert.match(result.content[0].text, new RegExp(`^exit code: 0\n\n(call${n}:\\d\n){10}$`));
      assert.ok(updates.length > 0);
      increasing(updates);
      for (const u of updates) assert.match(u.message ?? '', new RegExp(`^(call${n}:\\d)?$`));
    });
    await Promise.all(calls);
    const tokens = client.sent('tools/call').map((w) => w.message.params._meta.progressToken);
    assert.equal(new Set(tokens).size, 5);
  },

  async 'search has progress with a total'(t, driver, connect) {
    const client = await connect({ args: ['-progress-interval', '1ms'] });
    const updates = [];
    const result = await client.call('search', { root: 'node_modules', pattern: 'resetTimeoutOnProgress' },
      { onprogress: (p) => updates.push(p) });
    assert.match(result.content[0].text, /resetTimeoutOnProgress/);
    increasing(updates);
    assert.ok(updates.every((u) => u.message));
    assert.ok(updates.some((u) => u.total > 0 && u.progress <= u.total));
  },
});

function increasing(updates) {
  updates.reduce((last, { progress }) => {
    assert.ok(progress > last, `progress ${progress} after ${last}`);
    return progress;
  }, -Infinity);
}
