// Clients that know tasks, behind one interface: the TypeScript SDK 1.x, whose API for them is
// experimental, and the extension's own package on the SDK 2.x, in both protocol revisions.
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { TaskFailedError, createTaskSessionFromClient, resultFromTaskOutcome, toolDeclarationFromMcpTool } from '@modelcontextprotocol/ext-tasks/client';

const extension = 'io.modelcontextprotocol/tasks';

// What a client says that it can do.
export const capabilities = (driver) =>
  driver.protocol >= '2026-07-28'
    ? { elicitation: {}, extensions: { [extension]: {} } }
    : { elicitation: {}, ...(driver.sdk === 'sdk 1.x' && { tasks: { list: {}, cancel: {} } }) };

// tasksOf returns a function that calls a tool of a connected client as a task, and returns its
// result. created is called with what cancels the task.
export const tasksOf = (driver, { client, transport }, elicit) =>
  driver.sdk === 'sdk 1.x' ? experimental(client) : extended(driver, client, transport, elicit);

async function experimental(client) {
  await client.listTools(); // learns which tools can be tasks
  const tasks = client.experimental.tasks;
  return async (name, args, created = () => {}) => {
    let id;
    for await (const m of tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { task: { ttl: 60_000 } })) {
      if (m.type === 'taskCreated') {
        id = m.task.taskId;
        created(() => tasks.cancelTask(id));
      } else if (m.type === 'result') {
        return m.result;
      } else if (m.type === 'error') {
        // It has neither the result nor the message of a task that has failed. The server has.
        if ((await tasks.getTask(id)).status !== 'failed') throw m.error;
        return tasks.getTaskResult(id, CallToolResultSchema);
      }
    }
  };
}

async function extended(driver, client, transport, elicit) {
  const modern = driver.protocol >= '2026-07-28';
  const tools = (await client.listTools()).tools.map(toolDeclarationFromMcpTool);
  const session = createTaskSessionFromClient(client, {
    endpointId: 'interop',
    tools: { currentTool: (name) => tools.find((tool) => tool.name === name) },
    onInputRequest: async (request) => elicit(request),
    ...(modern && {
      rawDispatch: dispatcher(transport),
      v2RequestFraming: {
        protocolVersion: driver.protocol, clientInfo: { name: 'tooldeadline-interop', version: '1' },
        clientCapabilities: capabilities(driver),
      },
    }),
  });
  return async (name, args, created = () => {}) => {
    const execution = await session.callTool(name, args, { task: { preference: 'prefer', retentionMs: 60_000 } });
    if (execution.kind === 'task') created(() => execution.cancel());
    const { outcome } = await execution.settle();
    try {
      return resultFromTaskOutcome(outcome);
    } catch (e) {
      // The message is all that there is of a task that has failed, by 2025-11-25.
      if (!(e instanceof TaskFailedError)) throw e;
      return { isError: true, content: [{ type: 'text', text: e.message }] };
    }
  };
}

// dispatcher sends a request as it is, beside the client, which would not take the answer.
function dispatcher(transport) {
  const waiting = new Map();
  let count = 0;
  let onmessage = transport.onmessage;
  Object.defineProperty(transport, 'onmessage', {
    get: () => (message, extra) => {
      const resolve = message.method === undefined && waiting.get(message.id);
      if (!resolve) return onmessage?.(message, extra);
      waiting.delete(message.id);
      resolve(message.error ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result });
    },
    set: (f) => { onmessage = f; },
  });
  return (request, options) => new Promise((resolve, reject) => {
    const id = `raw-${++count}`;
    waiting.set(id, resolve);
    const name = request.params?.taskId ?? request.params?.name;
    transport.send({ jsonrpc: '2.0', id, ...request },
      { ...options, headers: { 'mcp-method': request.method, ...(name && { 'mcp-name': name }) } }).catch(reject);
  });
}
