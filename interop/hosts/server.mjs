// A server on the TypeScript SDK whose tools do what servers should not. It notes in a file what it was told.
//
//	node server.mjs MARK NOTES
//
// MARK is for sleep(1), and so stands among the arguments of all that this server starts.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [mark, notes] = process.argv.slice(2);
const note = (what) => appendFileSync(notes, `${JSON.stringify({ at: Date.now(), pid: process.pid, ...what })}\n`);
const forever = new Promise(() => {});

const server = new Server({ name: 'slow', version: '1.0.0' }, { capabilities: { tools: {} } });

const tools = {
  echo: { about: 'Returns a text.', run: ({ text }) => `echo: ${text}` },
  slow: {
    about: 'Works for some seconds.',
    async run({ seconds, progress }, { _meta, sendNotification }) {
      for (let i = 1; i <= seconds; i++) {
        await sleep(1000);
        if (progress && _meta?.progressToken !== undefined) {
          const params = { progressToken: _meta.progressToken, progress: i, total: seconds, message: `second ${i}` };
          await sendNotification({ method: 'notifications/progress', params });
        }
      }
      return `finished after ${seconds} seconds`;
    },
  },
  hang: { about: 'Never answers, but pings are answered.', run: () => forever },
  deaf: { about: 'Blocks the server for ever.', run: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) },
  crash: { about: 'Ends the server.', run: () => process.exit(3) },
  child: {
    about: 'Starts a process and never answers.',
    run() {
      spawn('sleep', [mark], { stdio: 'ignore' });
      return forever;
    },
  },
  ask: {
    about: 'Asks the person.',
    async run() {
      const answer = await server.elicitInput({
        message: 'May it be done?',
        requestedSchema: { type: 'object', properties: { yes: { type: 'boolean', title: 'Yes' } }, required: ['yes'] },
      }, { timeout: 600_000 });
      return `the person: ${JSON.stringify(answer)}`;
    },
  },
  sample: {
    about: 'Asks the model.',
    async run() {
      const answer = await server.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: 'One word?' } }], maxTokens: 10 }, { timeout: 600_000 });
      return `the model: ${JSON.stringify(answer.content)}`;
    },
  },
  noise: {
    about: 'Prints what is no message.',
    run() {
      process.stdout.write('Starting up ...\n\u001b[32mready\u001b[0m\n{"level":"info","msg":"ready"}\n');
      process.stdout.write('working ... '); // the answer follows on the same line
      return 'after noise';
    },
  },
};

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.entries(tools).map(([name, { about }]) => ({
    name,
    description: about,
    inputSchema: {
      type: 'object',
      properties: { text: { type: 'string' }, seconds: { type: 'number' }, progress: { type: 'boolean' } },
    },
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  })),
}));

server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: args } }, extra) => {
  note({ call: name, token: extra._meta?.progressToken !== undefined });
  extra.signal.addEventListener('abort', () => note({ cancelled: name, reason: String(extra.signal.reason ?? '') }));
  const text = await tools[name].run(args ?? {}, extra);
  note({ answered: name });
  return { content: [{ type: 'text', text }] };
});

const transport = new StdioServerTransport();
await server.connect(transport);
const receive = transport.onmessage;
transport.onmessage = (message, extra) => {
  if (message.method === 'initialize') {
    const { clientInfo: { name, version }, capabilities, protocolVersion: protocol } = message.params;
    note({ client: { name, version, protocol, capabilities: Object.keys(capabilities) } });
  }
  receive(message, extra);
};
