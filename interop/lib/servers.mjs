// The servers under test: "make interop" builds them, and INTEROP_BIN says where to.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
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

// conformance starts the server with the tools that the conformance runner calls.
export const conformance = (...args) => serve(binary('conformance'), args);

// conformanceOfMcpgo starts the one of mcp-go, which has the tools of the scenarios for tasks alone.
export const conformanceOfMcpgo = () => serve(binary('conformance-mcpgo'), []);

// proxy says how a client is to start mcpproxy, and proxyOverHTTP starts it. args are its own.
export const proxy = (args, env = {}) => ({ command: binary('mcpproxy'), args, env: { ...process.env, ...env, INTEROP_BIN: process.env.INTEROP_BIN } });
export const proxyOverHTTP = (args) => serve(binary('mcpproxy'), ['-http', '127.0.0.1:0', ...args]);

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
      const patience = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(patience);
    },
  };
}
