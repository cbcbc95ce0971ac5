// A client that is gone without a word: SPEC 6.6, 7.5.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { silent } from './lib/commands.mjs';
import { drivers } from './lib/drivers.mjs';
import { each, ended } from './lib/each.mjs';
import { gone, having, started, unique } from './lib/processes.mjs';
import { exampleOverHTTP } from './lib/servers.mjs';

each('gone', {
  async 'a client that is killed leaves no process'(t, driver) {
    // Where the client may come back for the result, the server's limit stops the tool.
    const server = driver.transport === 'http'
      ? await exampleOverHTTP(driver.stopsWithClient ? {} : { MCP_TIMEOUT: '5' })
      : undefined;
    if (server) t.after(() => server.stop());
    const marker = unique();
    const client = spawn(process.execPath,
      [fileURLToPath(new URL('lib/client.mjs', import.meta.url)), driver.name, marker, ...(server ? [server.url] : [])],
      { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => client.kill('SIGKILL'));
    const [line] = await once(createInterface({ input: client.stdout }), 'line');
    await started(`sleep ${marker}`);

    client.kill('SIGKILL');
    await once(client, 'exit');
    await gone(marker);
    if (driver.transport === 'stdio') {
      await ended(Number(line));
    } else {
      assert.ok(process.kill(server.pid, 0)); // still serves; throws if not
    }
  },
});

each('gone, over HTTP with sessions', {
  async 'a client that ends its session leaves no process'(t, driver, connect) {
    // No limit of the server's fires within the time of a test. The SDK answers the end of a
    // session when its tools have ended.
    const client = await connect();
    const marker = unique();
    client.call('run_command', silent(marker)).catch(() => {});
    await started(`sleep ${marker}`);
    await client.endSession();
    assert.deepEqual(having(marker), []);
  },
}, drivers.filter((d) => d.transport === 'http' && d.protocol < '2026-07-28'));
