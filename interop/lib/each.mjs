// Runs each case with each client.
import test from 'node:test';
import { drivers } from './drivers.mjs';
import { until } from './processes.mjs';

// each makes a test of every case with every driver, or with those in which. The drivers run
// side by side, the cases of one in turn. A case is called with the test, the driver, and a
// function that connects a client which is closed when the case is over, its server with it.
export function each(title, cases, which = drivers) {
  test(title, { concurrency: which.length }, async (t) => {
    await Promise.all(which.map((driver) => t.test(driver.name, async (t) => {
      for (const [name, run] of Object.entries(cases)) {
        await t.test(name, { timeout: 60_000 }, (t) => run(t, driver, connecting(t, driver)));
      }
    })));
  });
}

const connecting = (t, driver) => async (options) => {
  const client = await driver.connect(options);
  t.after(async () => {
    await client.close();
    await ended(client.pid);
  });
  return client;
};

// ended waits for the end of a process.
export const ended = (pid) => until(`the end of process ${pid}`, () => {
  try {
    process.kill(pid, 0);
  } catch (e) {
    return e.code === 'ESRCH';
  }
});
