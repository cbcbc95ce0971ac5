// The servers under test: "make interop" builds them, and INTEROP_BIN says where to.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from './processes.mjs';

function binary(name) {
  const dir = process.env.INTEROP_BIN;
  if (!dir) throw new Error('INTEROP_BIN is not set: run "make interop" at the root of the repository');
  return `${dir}/${name}`;
}

// Progress comes often enough for clients with limits of a second.
const exampleArgs = ['-progress-interval', '100ms'];

// exampleOverStdio says how a client is to start the example server; args go to it on top.
export const exampleOverStdio = (env = {}, args = []) =>
  ({ command: binary('mcpserver'), args: [...exampleArgs, ...args], env: { ...env, INTEROP_BIN: process.env.INTEROP_BIN } });

// exampleOverHTTP starts the example server.
export const exampleOverHTTP = (env = {}, args = []) =>
  serve(binary('mcpserver'), ['-http', '127.0.0.1:0', ...exampleArgs, ...args], env);

// A kind of server: how a client is to start one over stdio, and what starts one over HTTP. Both take
// the environment and the arguments. That of mcp-go has the tools that can be tasks.
export const example = { overStdio: exampleOverStdio, overHTTP: exampleOverHTTP };
export const mcpgo = {
  overStdio: (env = {}, args = []) =>
    ({ command: binary('conformance-mcpgo'), args: ['-stdio', ...args], env: { ...env, INTEROP_BIN: process.env.INTEROP_BIN } }),
  overHTTP: (env = {}, args = []) => serve(binary('conformance-mcpgo'), args, env),
};

// conformance starts the server with the tools that the conformance runner calls.
export const conformance = (...args) => serve(binary('conformance'), args);

// everything says how to start the example server of an SDK for Go that is called so.
export const everything = (sdk) => ({ command: binary(`everything-${sdk}`), args: [] });

// proxied says how to start a server of the MCP project.
export const proxied = (name, ...args) => ({ command: fileURLToPath(new URL(`../proxied/node_modules/.bin/mcp-server-${name}`, import.meta.url)), args });

// proxyOverHTTP starts mcpdeadline. args are its own.
export const proxyOverHTTP = (args) => serve(binary('mcpdeadline'), ['-http', '127.0.0.1:0', ...args]);

// behind puts the proxy in front of a server.
export const behind = ({ command, args, env }, ...flags) => ({
  command: binary('mcpdeadline'), args: [...flags, '--', command, ...args], env: { ...process.env, ...env, INTEROP_BIN: process.env.INTEROP_BIN },
});

// mcpclient is what run_command is given to call a tool of another server through the client of the examples.
export const mcpclient = (flags, tool, args, server) =>
  ({ command: binary('mcpclient'), args: [...flags, tool, JSON.stringify(args), '--', server.command, ...server.args] });

// pageServer starts the server of the page; tell has it start executions, or end them.
export async function pageServer() {
  const server = await serve(binary('pageserver'), [], {}, 'pipe');
  return {
    ...server,
    async tell(line) {
      server.stdin.write(`${line}\n`);
      await until(`the server to ${line}`, () => server.lines.includes(`done: ${line}`));
    },
  };
}

async function serve(command, args, env = {}, stdin = 'ignore') {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: [stdin, 'ignore', 'pipe'] });
  const lines = [];
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const url = await until(`the address of ${command}`, () => {
    if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}: ${lines.join('\n')}`);
    return lines.map((line) => line.match(/http:\/\/[\d.]+:\d+\S*/)?.[0]).find(Boolean);
  });
  return {
    url,
    pid: child.pid,
    stdin: child.stdin,
    lines,
    async stop() {
      child.kill('SIGTERM');
      const kill = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(kill);
    },
  };
}
