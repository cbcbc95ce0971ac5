// What the SDKs do otherwise than a server would like, and why its own limits are needed.
// A new version that mends one of these fails here: then the case belongs to calls.test.mjs.
import assert from 'node:assert/strict';
import { silent, talking } from './lib/commands.mjs';
import { drivers } from './lib/drivers.mjs';
import { each } from './lib/each.mjs';
import { gone, started, unique, until } from './lib/processes.mjs';

each('sdk', {
  async 'maxTotalTimeout is not looked at without progress'(t, driver, connect) {
    const client = await connect();
    const call = client.call('hang', {}, { timeout: 2000, maxTotalTimeout: 500, resetTimeoutOnProgress: true, onprogress() {} });
    await assert.rejects(call, { code: driver.timedOut, message: /Request timed out$/, data: { timeout: 2000 } });
  },

  async 'maxTotalTimeout is not looked at without resetTimeoutOnProgress'(t, driver, connect) {
    const client = await connect();
    const call = client.call('run_command', talking(unique(), 60), { timeout: 2000, maxTotalTimeout: 500, onprogress() {} });
    await assert.rejects(call, { code: driver.timedOut, message: /Request timed out$/, data: { timeout: 2000 } });
  },

  async 'maxTotalTimeout does not cancel, and progress is an error then'(t, driver, connect) {
    const client = await connect({ env: { MCP_TIMEOUT: '5' } });
    const marker = unique();
    const call = client.call('run_command', talking(marker, 60),
      { timeout: 2000, maxTotalTimeout: 500, resetTimeoutOnProgress: true, onprogress() {} });
    await assert.rejects(call, { message: /Maximum total timeout exceeded$/ });
    assert.deepEqual(client.sent('notifications/cancelled'), []);
    await until('progress of a call that the client has given up', () =>
      client.wire.some((w) => /progress notification for an unknown token/.test(w.error)));
    await gone(marker);
    // 1.x forgets to clear its timer, which cancels a call that has failed already.
    const reasons = client.sent('notifications/cancelled').map((w) => w.message.params.reason);
    assert.deepEqual(reasons, driver.sdk === 'sdk 1.x' ? ['McpError: MCP error -32001: Request timed out'] : []);
  },
});

each('sdk, over stdio', {
  async 'an answer to a call that was cancelled is an error'(t, driver, connect) {
    const client = await connect();
    const marker = unique();
    const aborter = new AbortController();
    const call = client.call('run_command', silent(marker), { signal: aborter.signal });
    await started(`sleep ${marker}`);
    aborter.abort('enough');
    await assert.rejects(call, /enough/);
    await until('the answer to the cancelled call', () =>
      client.wire.some((w) => /response for an unknown message ID/.test(w.error)));
  },
}, drivers.filter((d) => d.transport === 'stdio'));
