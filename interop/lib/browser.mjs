// A browser of its own for each test.
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

// chromiumPath is where Chromium is, or undefined.
export const chromiumPath = () =>
  [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => path && existsSync(path));

const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];

// openPage opens a browser with a new profile. In problems is what it reports to its console,
// what a script throws, and what it asks of any other server than the one at url.
export async function openPage(url, options = {}) {
  const profile = await mkdtemp(join(tmpdir(), 'chromium-'));
  const context = await chromium.launchPersistentContext(profile, { executablePath: chromiumPath(), args: flags, ...options });
  context.setDefaultTimeout(30_000);
  const problems = [];
  context.on('console', (message) => ['error', 'warning'].includes(message.type()) && problems.push(message.text()));
  context.on('weberror', (error) => problems.push(String(error.error())));
  context.on('request', (request) => new URL(request.url()).origin !== url && problems.push(request.url()));
  return {
    page: await context.newPage(),
    problems,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
