// The clients that drive the servers: each SDK, in each protocol revision that it speaks,
// over each transport, behind one interface.
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HTTP1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Client as Client2, StreamableHTTPClientTransport as HTTP2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { example } from './servers.mjs';

const who = { name: 'tooldeadline-interop', version: '1' };
const capabilities = { elicitation: {} };

// 1.x speaks 2025-11-25 at most.
const sdk1 = {
  name: 'sdk 1.x',
  timedOut: -32001,
  Stdio: Stdio1,
  HTTP: HTTP1,
  client: (protocol, can) => new Client1(who, { capabilities: can }),
  call: (client, params, options) => client.callTool(params, undefined, options),
  onElicit: (client, answer) => client.setRequestHandler(ElicitRequestSchema, answer),
};

// 2.x does too unless it is asked to negotiate, and then 2026-07-28.
const sdk2 = {
  name: 'client 2.x',
  timedOut: 'REQUEST_TIMEOUT',
  Stdio: Stdio2,
  HTTP: HTTP2,
  client: (protocol, can) =>
    new Client2(who, { capabilities: can, versionNegotiation: { mode: protocol === '2025-11-25' ? 'legacy' : { pin: protocol } } }),
  call: (client, params, options) => client.callTool(params, options),
  onElicit: (client, answer) => client.setRequestHandler('elicitation/create', answer),
};

// A driver is what differs between two columns of the table of results:
//
//   timedOut         the code of the error of a call that ran into a limit of the client's
//   stopsWithClient  whether the tool of a client that is gone is stopped at once; otherwise
//                    the client may come back for the result, and the server's limits stop it
export const drivers = [
  [sdk1, '2025-11-25'],
  [sdk2, '2025-11-25'],
  [sdk2, '2026-07-28'],
].flatMap(([sdk, protocol]) =>
  ['stdio', 'http'].map((transport) => ({
    name: `${sdk.name}, ${protocol}, ${transport}`,
    sdk: sdk.name,
    transport,
    protocol,
    timedOut: sdk.timedOut,
    stopsWithClient: transport === 'stdio' || protocol >= '2026-07-28',
    connect: (options) => connect(sdk, protocol, transport, options),
  })),
);

// connect starts a server of a kind, the example, and connects a client to it. env and args are the
// server's; elicit answers its questions; can is what the client says that it can do. With url the
// server runs already.
async function connect(sdk, protocol, transport, { kind = example, env, args, elicit, url, can = capabilities } = {}) {
  const server = transport === 'http' && !url ? await kind.overHTTP(env, args) : undefined;
  const wire = [];
  const client = sdk.client(protocol, can);
  if (elicit) sdk.onElicit(client, elicit);
  const t = transport === 'http'
    ? new sdk.HTTP(new URL(url ?? server.url))
    : new sdk.Stdio({ ...kind.overStdio(env, args), stderr: 'ignore' });
  try {
    // What the client sends and gets, in its order.
    const send = t.send.bind(t);
    t.send = (message, options) => {
      wire.push({ to: 'server', message });
      return send(message, options);
    };
    t.onmessage = (message) => wire.push({ to: 'client', message });
    client.onerror = (error) => wire.push({ error });
    await client.connect(t);
  } catch (e) {
    await server?.stop();
    throw e;
  }
  return {
    wire,
    client,
    transport: t,
    pid: server?.pid ?? t.pid,
    call: (name, args, options) => sdk.call(client, { name, arguments: args }, options),
    // What the client has sent of a method.
    sent: (method) => wire.filter((w) => w.to === 'server' && w.message.method === method),
    // How a client over HTTP says goodbye before 2026-07-28.
    endSession: () => t.terminateSession(),
    async close() {
      await client.close();
      await server?.stop();
    },
  };
}
