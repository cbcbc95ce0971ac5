// The snippet of a TypeScript client in docs/clients.md, as it stands. SPEC 7.1, 8.1.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

// The command prints a line a second for longer than the timeout of the snippet.
const makefile = 'all:\n\t@for i in 1 2 3 4 5 6 7 8; do echo line $$i; sleep 1; done\n';

async function snippet(t, change = (code) => code) {
  const page = await readFile(new URL('../docs/clients.md', import.meta.url), 'utf8');
  const code = page.match(/^```ts\n(.*?)^```$/ms)?.[1];
  assert.ok(code, 'docs/clients.md has a snippet');
  const dir = await mkdtemp(join(tmpdir(), 'snippet-'));
  t.after(() => rm(dir, { recursive: true }));
  await symlink(fileURLToPath(new URL('node_modules', import.meta.url)), join(dir, 'node_modules'));
  await writeFile(join(dir, 'Makefile'), makefile);
  await writeFile(join(dir, 'client.mjs'), change(code));
  const env = { ...process.env, PATH: `${process.env.INTEROP_BIN}:${process.env.PATH}` };
  return run(process.execPath, ['client.mjs'], { cwd: dir, env });
}

test('the snippet of docs/clients.md', { concurrency: 2, timeout: 60_000 }, async (t) => {
  await Promise.all([
    t.test('progress renews its timeout', async (t) => {
      const { stdout } = await snippet(t);
      assert.match(stdout, /^line \d$/m);
      assert.match(stdout, /^done: .*"exit code: 0(\\n){2}(line \d\\n){8}"/m);
    }),
    t.test('and without onprogress it does not', async (t) => {
      const without = (code) => code.replace(/^  onprogress: .*\n/m, '');
      await assert.rejects(snippet(t, without), { stderr: /-32001: Request timed out/ });
    }),
  ]);
});
