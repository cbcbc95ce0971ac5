// Calls that outlive their answer: tasks for the clients that know them, and continuations for the
// same clients when they do not. SPEC 11.1 to 11.6, 12.1 to 12.3.
import assert from 'node:assert/strict';
import { counting, silent } from './lib/commands.mjs';
import { drivers } from './lib/drivers.mjs';
import { each } from './lib/each.mjs';
import { gone, started, unique } from './lib/processes.mjs';
import { example, mcpgo } from './lib/servers.mjs';
import { capabilities, tasksOf } from './lib/tasks.mjs';

const args = ['-tasks', '300ms'];
const text = (result) => result.content.map((c) => c.text).join('\n');

// withTasks connects a client that takes tasks, and gives what calls a tool as one.
async function withTasks(driver, connect, { env, elicit = () => ({ action: 'accept', content: {} }) } = {}) {
  const client = await connect({
    args, env, can: capabilities(driver), ...(driver.sdk === 'sdk 1.x' && { elicit: async (r) => elicit(r) }),
  });
  return tasksOf(driver, client, elicit);
}

// asTask calls a tool, which must become a task.
async function asTask(call, name, params) {
  let tasks = 0;
  const result = await call(name, params, () => tasks++);
  assert.equal(tasks, 1);
  return result;
}

// Each client with a server of each SDK.
const both = Object.entries({ 'the Go SDK': example, 'mcp-go': mcpgo }).flatMap(([name, kind]) =>
  drivers.map((d) => ({ ...d, name: `${d.name}, ${name}`, connect: (options) => d.connect({ ...options, kind }) })));

each('tasks', {
  async 'a result'(t, driver, connect) {
    const call = await withTasks(driver, connect);
    const result = await asTask(call, 'run_command', counting('n', unique()));
    assert.match(text(result), /^exit code: 0\n\nn:0\n(n:\d\n)*n:9\n$/);
  },

  async 'a failure'(t, driver, connect) {
    const call = await withTasks(driver, connect);
    const result = await asTask(call, 'run_command', { command: 'sh', args: ['-c', 'echo before; sleep 1; exit 3'] });
    assert.ok(result.isError);
    assert.match(text(result), /^exit code: 3\n\nbefore\n$/);
  },

  async 'what a limit leaves'(t, driver, connect) {
    const call = await withTasks(driver, connect, { env: { MCP_IDLE_TIMEOUT: '2' } });
    const marker = unique();
    const result = await asTask(call, 'run_command', silent(marker));
    assert.ok(result.isError);
    assert.match(text(result), /^(No progress for 2s \(idle timeout\)|sh process timed out after 2000ms without output\.)[^]*started\n/);
    if (result._meta) assert.equal(result._meta['io.github.tooldeadline/outcome'].exitCode, 124);
    await gone(marker);
  },

  async 'cancel leaves no process'(t, driver, connect) {
    const call = await withTasks(driver, connect);
    const marker = unique();
    let cancel;
    const result = call('run_command', silent(marker), (c) => { cancel = c; });
    const rejected = assert.rejects(result);
    await started(`sleep ${marker}`);
    while (!cancel) await new Promise((resolve) => setTimeout(resolve, 20));
    await cancel();
    await rejected;
    await gone(marker);
  },

  async 'a question is answered'(t, driver, connect) {
    const call = await withTasks(driver, connect, { elicit: () => ({ action: 'accept', content: { approve: true } }) });
    const result = await call('approve', { action: 'rm -r build' });
    assert.match(text(result), /^Approved: rm -r build/);
  },
}, both);

each('tasks of 1.x', {
  async 'the list has them, and no others'(t, driver, connect) {
    const client = await connect({ args, can: capabilities(driver) });
    const call = await tasksOf(driver, client);
    await asTask(call, 'run_command', counting('n', unique()));
    const { tasks } = await client.client.experimental.tasks.listTasks();
    assert.deepEqual(tasks.map((task) => task.status), ['completed']);
    await assert.rejects(client.client.experimental.tasks.getTask('nobody'), { code: -32602, message: /unknown or expired/ });
  },
}, both.filter((d) => d.sdk === 'sdk 1.x'));

// The call takes longer than the client waits, and nothing renews that.
const waits = { timeout: 5000 };

each('continuation', {
  async 'without it the call is lost'(t, driver, connect) {
    const client = await connect();
    await assert.rejects(client.call('run_command', { command: 'sleep', args: ['20'] }, waits), { code: driver.timedOut });
  },

  async 'with it the result arrives whole'(t, driver, connect) {
    const client = await connect({ args: ['-continue', '2s'] });
    let result = await client.call('run_command', { command: 'sh', args: ['-c', 'echo one; sleep 20; echo two'] }, waits);
    let rounds = 0;
    const told = new Set();
    for (; /^Still running after [\d.]+s\./.test(text(result)); rounds++) {
      assert.ok(!result.isError);
      // As a model would do it.
      const [, tool, params] = text(result).match(/\nCall (\w+) with (\{.*\}) to wait for the result\.$/);
      assert.equal(result._meta['io.github.tooldeadline/continuation'].id, JSON.parse(params).id);
      assert.ok(!told.has(params), 'hosts end a session that repeats a call');
      told.add(params);
      result = await client.call(tool, JSON.parse(params), waits);
    }
    assert.ok(rounds >= 4, `${rounds} rounds`);
    assert.equal(text(result), 'exit code: 0\n\none\ntwo\n');
  },

  async 'a call can be stopped'(t, driver, connect) {
    const client = await connect({ args: ['-continue', '2s'] });
    const marker = unique();
    let result = await client.call('run_command', silent(marker), waits);
    const { id } = result._meta['io.github.tooldeadline/continuation'];
    result = await client.call('wait_for_result', { id, cancel: true }, waits);
    assert.ok(result.isError);
    assert.equal(result._meta['io.github.tooldeadline/outcome'].exitCode, 130);
    await gone(marker);
  },
});
