// The page of package inspect in a real browser: SPEC 14.1 to 14.3. It needs Chromium, and is
// skipped where there is none.
import assert from 'node:assert/strict';
import test from 'node:test';
import { chromiumPath, openPage } from './lib/browser.mjs';
import { pageServer } from './lib/servers.mjs';

const skip = chromiumPath() ? false : 'needs Chromium: on Debian, apt-get install chromium; or name one in CHROMIUM';

// on makes a test of the page: it has a server, and a browser that is open there. Afterwards
// nothing may have gone wrong on the page, and nothing may have been asked of anybody else.
function on(name, run, options) {
  test(name, { skip, timeout: 120_000 }, async (t) => {
    const server = await pageServer();
    const { page, problems, close } = await openPage(server.url, options);
    t.after(async () => {
      await close();
      await server.stop();
    });
    await page.goto(`${server.url}/debug/tools`);
    await run(page, server, t);
    assert.deepEqual([...problems], []);
  });
}

const row = (page, table, tool) => page.getByRole('table', { name: table }).getByRole('row').filter({ hasText: tool });
const running = (page, tool) => row(page, 'Running executions', tool);
const ended = (page, tool) => row(page, 'The last executions that have ended', tool);

on('what runs appears and ends without a reload', async (page, server) => {
  await page.getByText('Live').waitFor();
  await page.evaluate(() => { window.loaded = 'once'; });
  await server.tell('start appearing 1 1h');
  await running(page, 'appearing').waitFor();
  assert.match(await running(page, 'appearing').textContent(), /<i>step<\/i> 1 of 1/); // text, and no markup
  await server.tell('end appearing');
  await ended(page, 'appearing').waitFor();
  await running(page, 'appearing').waitFor({ state: 'detached' });
  assert.match(await ended(page, 'appearing').textContent(), /ok/);
  assert.equal(await page.evaluate(() => window.loaded), 'once');
});

on('a stuck one is shown as such before its limit fires, with its stack', async (page, server) => {
  await server.tell('start stuck 1 20s');
  await running(page, 'stuck').getByText('running', { exact: true }).waitFor();
  await running(page, 'stuck').getByText('near idle').waitFor(); // after 16 s
  const beside = await page.context().newPage();
  await beside.goto(page.url());
  await running(beside, 'stuck').getByRole('link').click();
  await beside.getByRole('link', { name: 'Where it is now' }).click();
  assert.match(await beside.locator('pre').textContent(), /main\.waitForIt/);
  assert.match(await beside.getByRole('img').getAttribute('aria-label'), /stuck #\d+, running for/);
  await ended(page, 'stuck').getByText('idle timeout').first().waitFor();
});

on('the page of one is live to its end', async (page, server) => {
  await server.tell('observe watched 1 2s');
  await running(page, 'watched').getByRole('link').click();
  await page.getByText('Live').waitFor();
  await page.evaluate(() => { window.loaded = 'once'; });
  const elapsed = page.locator('dt', { hasText: 'Elapsed' }).locator('+ dd');
  const before = await elapsed.textContent();
  await nextEvent(page);
  assert.notEqual(await elapsed.textContent(), before);
  await page.getByText('only observed: nothing is stopped by them. The idle limit would have stopped it').waitFor();
  await server.tell('end watched');
  await page.getByText('ended', { exact: true }).waitFor();
  await page.getByText('ok', { exact: true }).waitFor();
  assert.equal(await page.evaluate(() => window.loaded), 'once');
});

on('sorting and filters', async (page, server) => {
  await server.tell('start beta 2 1h');
  await server.tell('start alpha 1 1h');
  await running(page, 'alpha').waitFor();
  const tools = () => page.getByRole('table', { name: 'Running executions' }).locator('tbody tr td:nth-child(2)').allTextContents();
  assert.deepEqual(await tools(), ['beta', 'beta', 'alpha']); // the longest first
  await page.getByRole('link', { name: 'Tool', exact: true }).click();
  await page.waitForURL(/sort=tool/);
  assert.deepEqual(await tools(), ['beta', 'beta', 'alpha']);
  await page.getByRole('link', { name: 'Tool ▼' }).click();
  await page.waitForURL(/dir=up/);
  assert.deepEqual(await tools(), ['alpha', 'beta', 'beta']);
  await page.getByLabel('Tool').fill('alpha');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.waitForURL(/tool=alpha/);
  assert.deepEqual(await tools(), ['alpha']);
  await page.getByLabel('State').selectOption('held');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.waitForURL(/state=held/);
  await page.getByText('None.').waitFor();
});

on('aborting is refused without the switch, and works with it', async (page, server) => {
  await server.tell('start doomed 1 1h');
  await running(page, 'doomed').getByRole('link').click();
  await page.getByRole('heading', { name: 'doomed' }).waitFor();
  const abort = page.getByRole('button', { name: 'Abort this execution' });
  assert.equal(await abort.count(), 0);
  const id = new URL(page.url()).searchParams.get('id');
  const form = { id, abort: '1' };
  const refused = await page.request.post(`${server.url}/debug/tools`, { form, headers: { Origin: server.url } });
  assert.equal(refused.status(), 403);
  const foreign = await page.request.post(`${server.url}/abort`, { form, headers: { Origin: 'https://evil.example' } });
  assert.equal(foreign.status(), 403);
  await page.goto(`${server.url}/abort?id=${id}`);
  await abort.click();
  await page.getByText('aborted', { exact: true }).waitFor();
  assert.equal(new URL(page.url()).pathname, '/abort');
  assert.equal(await abort.count(), 0);
});

on('10 000 that run are there within a second', async (page, server, t) => {
  await server.tell('start crowd 10000 1h');
  const durations = []; // the best of them: others are busy on the machine too
  for (let i = 0; i < 5; i++) {
    await page.reload();
    durations.push(await page.evaluate(() => performance.getEntriesByType('navigation')[0].duration));
  }
  assert.ok(Math.min(...durations) < 1000, `${durations} ms`);
  t.diagnostic(`${durations.map(Math.round)} ms`);
  await page.getByText('Page 1 of 100, 10000 executions.').waitFor();
  await page.getByText('Live').waitFor();
  await page.getByRole('link', { name: 'Next' }).click();
  await page.getByText('Page 2 of 100').waitFor();
  await server.tell('end crowd');
  await page.getByText('0 running').waitFor();
});

on('by keyboard alone', async (page, server) => {
  await server.tell('start keyed 1 1h');
  await running(page, 'keyed').waitFor();
  await page.getByText('Live').waitFor();
  const focused = () => page.evaluate(() => {
    const at = document.activeElement;
    return (at.name || at.textContent || '').trim();
  });
  const seen = [];
  const id = await running(page, 'keyed').getByRole('link').textContent();
  while ((seen.push(await focused()), seen.at(-1)) !== id) {
    assert.ok(seen.length < 40, seen.join(', '));
    await page.keyboard.press('Tab');
    if (seen.at(-1) === 'Filter' || seen.at(-1) === 'keyed') await nextEvent(page); // the focus stays where it was
  }
  for (const want of ['tool', 'state', 'Filter', 'keyed', 'Number']) assert.ok(seen.includes(want), `${want} in ${seen.join(', ')}`);
  await nextEvent(page);
  assert.equal(await focused(), id);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'keyed' }).waitFor();
});

// nextEvent waits until the page has been drawn anew.
const nextEvent = (page) => page.evaluate(() => new Promise((resolve) => {
  new MutationObserver((_, o) => (o.disconnect(), resolve())).observe(document.querySelector('main'), { childList: true });
}));

on('without JavaScript', async (page, server) => {
  await server.tell('start plain 1 1h');
  await page.reload();
  await page.getByText('As of when the page was loaded').waitFor();
  await page.getByLabel('Tool').fill('plain');
  await page.getByRole('button', { name: 'Filter' }).click();
  await running(page, 'plain').getByRole('link').click();
  await page.getByRole('link', { name: 'Where it is now' }).click();
  await page.locator('pre').waitFor();
  await page.goto(`${server.url}/abort${new URL(page.url()).search}`);
  await page.getByRole('button', { name: 'Abort this execution' }).click();
  await page.getByText('aborted', { exact: true }).waitFor();
}, { javaScriptEnabled: false });
