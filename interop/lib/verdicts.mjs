// What the conformance runner says of a server.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

// verdicts runs all scenarios against a server that is starting: name -> [[check, status,
// what went wrong]].
export async function verdicts(t, starting) {
  const server = await starting;
  const dir = await mkdtemp(join(tmpdir(), 'interop-'));
  try {
    const runner = spawn(process.execPath, [
      '--import', new URL('node20.mjs', import.meta.url).href,
      fileURLToPath(import.meta.resolve('@modelcontextprotocol/conformance/dist/index.js')),
      'server', '--url', server.url, '--suite', 'all', '--output-dir', dir,
    ], { stdio: 'ignore' });
    t.after(() => runner.kill('SIGKILL'));
    await once(runner, 'exit'); // 1 where anything fails
    const found = new Map();
    for (const name of (await readdir(dir)).sort()) {
      const checks = JSON.parse(await readFile(join(dir, name, 'checks.json'), 'utf8'));
      found.set(name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, ''), checks.map((c) => [c.id, c.status, c.errorMessage]));
    }
    return found;
  } finally {
    await rm(dir, { recursive: true });
    await server.stop();
  }
}
