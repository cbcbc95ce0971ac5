// The public conformance runner's scenarios for tasks, which are all of protocol 2026-07-28. Its
// version that has them is not released yet, and does not count them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { conformance, mcpgo } from './lib/servers.mjs';

// The checks that each scenario has; one that is in none of the runs fails.
const scenarios = {
  'tasks-lifecycle': 9,
  'tasks-capability-negotiation': 5,
  'tasks-wire-fields': 4,
  'tasks-request-state-removal': 3,
  'tasks-mrtr-input': 4,
  'tasks-request-headers': 5,
  'tasks-dispatch-and-envelope': 9,
  'tasks-required-task-error': 3,
  'tasks-mrtr-composition': 2,
  'tasks-status-notifications': 0, // the runner skips it
};

for (const [sdk, start] of [['the Go SDK', () => conformance('-tasks')], ['mcp-go', mcpgo.overHTTP]]) {
  test(`conformance of tasks, ${sdk}`, async (t) => {
    const server = await start();
    t.after(() => server.stop());
    for (const [name, count] of Object.entries(scenarios)) {
      await t.test(name, async (t) => {
        const checks = await run(t, name, server.url);
        assert.deepEqual(checks.filter((c) => c.status !== 'SUCCESS' && c.status !== 'SKIPPED'), []);
        assert.equal(checks.filter((c) => c.status === 'SUCCESS').length, count);
      });
    }
  });
}

async function run(t, scenario, url) {
  const dir = await mkdtemp(join(tmpdir(), 'interop-'));
  try {
    const runner = spawn(process.execPath, [
      '--import', new URL('lib/node20.mjs', import.meta.url).href,
      fileURLToPath(import.meta.resolve('conformance-next/dist/index.js')),
      'server', '--url', url, '--scenario', scenario, '--output-dir', dir,
    ], { stdio: 'ignore' });
    t.after(() => runner.kill('SIGKILL'));
    await once(runner, 'exit');
    const [found] = await readdir(dir);
    return JSON.parse(await readFile(join(dir, found, 'checks.json'), 'utf8'));
  } finally {
    await rm(dir, { recursive: true });
  }
}
