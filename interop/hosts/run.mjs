// Runs one host before all servers, case by case, and writes a record of what its model saw.
//
//	node run.mjs HOST INSTALLED BINARIES RECORD [CASE/SETUP]...
//
// scripts/hosts calls it, in namespaces of its own: it ends all processes that a case has left, and a
// host that could reach the network would tell others what it does.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, closeSync, readFileSync, rmSync, writeFileSync, existsSync, createWriteStream } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cases, goLimits, longer, setups } from './cases.mjs';
import { hosts } from './hosts.mjs';
import { startModel } from './model.mjs';
import { above, list, role } from './processes.mjs';

const [name, dir, bin, record, ...only] = process.argv.slice(2);
const host = hosts[name];
if (!host) throw new Error(`no host ${name}; there are ${Object.keys(hosts).join(', ')}`);
if (Object.keys(networkInterfaces()).some((i) => i !== 'lo')) throw new Error('this has a network; use make hosts');
const mine = new Set(list().map(({ pid }) => pid)); // this process and what stands above it
if (!mine.has(1) || mine.size > 5) throw new Error('this sees the processes of others; use make hosts');

// longest gives the seconds that a case may take before the host is ended.
const longest = (usual) => (usual ? host.usual + 90 : host.endless ? 60 : 240);
const settle = 8; // seconds for what is left to end by itself
const others = () => list().filter(({ pid }) => !mine.has(pid));
const started = Date.now();
let count = 0;

async function run(caseName, setupName) {
  const { script, go, kill, second, plain, setups: fit, usual } = cases[caseName];
  const setup = setups[setupName];
  const mark = `1000.${started}${String(++count).padStart(3, '0')}`;
  const steps = (setup.go ? go : script)?.({ mark, long: longer(usual ? host.usual : host.limit) });
  if (!steps || (setup.only && setup.only !== caseName) || (fit && !fit.includes(setupName)) || (plain && !host.plain)) return undefined;

  const home = mkdtempSync(join(tmpdir(), `host-${name}-`));
  const work = join(home, 'project');
  const notes = join(home, 'notes');
  mkdirSync(work);
  closeSync(openSync(notes, 'a'));
  writeFileSync(join(home, 'limits.json'), JSON.stringify(goLimits(host.limit)));
  const log = process.env.HOSTS_LOG ? createWriteStream(join(home, 'model.log')) : undefined;
  const model = await startModel(steps, (line) => log?.write(`${Date.now()} ${line}\n`));
  const context = { bin, home, limit: host.limit, endless: host.endless, known: host.known };
  const server = setup.command([process.execPath, fileURLToPath(new URL('server.mjs', import.meta.url)), mark, notes], context);
  if (!server) {
    rmSync(home, { recursive: true });
    await model.stop();
    return undefined;
  }
  const given = { dir, home, work, node: process.execPath, model: model.url, server, second: second && setup.command(second(context), context), trusting: Boolean(setup.go || host.trusting), limit: usual ? undefined : host.limit };
  for (const [file, content] of Object.entries(host.files(given))) {
    mkdirSync(dirname(join(home, file)), { recursive: true });
    writeFileSync(join(home, file), content);
  }
  const [program, ...args] = host.command(given);
  const out = openSync(join(home, 'host.out'), 'w');
  const begun = performance.now();
  const child = spawn(program, args, {
    cwd: work, stdio: ['ignore', out, out], detached: true,
    env: {
      HOME: home, PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`, TMPDIR: home, TERM: 'dumb', LANG: 'C.UTF-8', USER: 'nobody',
      NO_COLOR: '1', DO_NOT_TRACK: '1', ...host.env(given),
    },
  });
  closeSync(out);
  let ended;
  child.once('error', (err) => { ended ??= { error: String(err) }; });
  child.once('exit', (code, signal) => { ended ??= { code, signal }; });
  const read = () => readFileSync(notes, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  let killed = false;
  while (!ended && performance.now() - begun < 1000 * longest(usual)) {
    await sleep(100);
    if (kill && !killed && others().some((p) => role(p, mark) === 'child')) {
      await sleep(500);
      killed = true;
      // The host is all that stands above the process that it has started.
      const all = list();
      const servers = all.filter((p) => ['proxy', 'server'].includes(role(p, mark)) || /mcpserver$/.test(p.args[0])).map(({ pid }) => pid);
      const chain = above(servers[0], process.pid, all).filter(({ pid, args: [file] }) => !servers.includes(pid) && !/mcpdeadline$|mcpserver$/.test(file));
      for (const { pid } of chain) signal(pid);
    }
  }
  const seconds = (performance.now() - begun) / 1000;
  const late = !ended;
  if (late) signal(-child.pid);
  for (const limit = performance.now() + 1000 * settle; others().length > 0 && performance.now() < limit;) await sleep(100);
  const left = others();
  for (const { pid } of left) signal(pid);
  await model.stop();
  const noted = read();
  const result = {
    case: caseName, setup: setupName, day: new Date(begun + performance.timeOrigin).toISOString().slice(0, 10),
    seconds: round(seconds), ended: late ? 'not by itself' : killed ? 'killed' : ended.error ?? ended.signal ?? ended.code, done: model.done,
    calls: model.calls.map(({ tool, waited, search, seconds: after, text, offered }) => ({
      tool, ...(waited && { waited }), ...(search && { search }), seconds: after === undefined ? null : round(after), text: short(text && homeless(text, home)), ...(offered && { offered: offered.slice(0, 40) }),
    })),
    served: noted.filter((n) => n.call).map((n) => n.call),
    cancelled: noted.filter((n) => n.cancelled).map((n) => n.cancelled),
    token: noted.some((n) => n.token), client: noted.find((n) => n.client)?.client,
    left: left.map((p) => role(p, mark)).sort(),
  };
  if (process.env.HOSTS_LOG) console.log(`  in ${home}; left: ${left.map((p) => p.args.join(' ').slice(0, 120)).join('; ')}`);
  else rmSync(home, { recursive: true, force: true });
  return result;
}

function signal(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // ended meanwhile
  }
}

const round = (seconds) => Math.round(10 * seconds) / 10;

// homeless leaves the folder of the run out of a text, also as part of a file's name.
const homeless = (text, home) => text.replaceAll(home, '~').replaceAll(home.replaceAll('/', '-'), '-home');

// short keeps the head and the tail of what the model saw: the record is for people to read.
const short = (text) => (!text || text.length <= 600 ? text : `${text.slice(0, 300)} … ${text.slice(-300)}`);

// What was measured before and is not now is kept, if it was with the same version.
let all = existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : {};
if (all.version !== host.version) all = {};
all = { host: name, version: host.version, limit: host.limit, results: all.results ?? [] };
for (const caseName of Object.keys(cases)) {
  for (const setupName of Object.keys(setups)) {
    if (only.length > 0 && !only.some((o) => o === caseName || o === setupName || o === `${caseName}/${setupName}`)) continue;
    const result = await run(caseName, setupName);
    if (!result) continue;
    console.log(`${name} ${caseName}/${setupName}: ${result.calls.map((c) => `${c.tool} ${c.seconds ?? '-'} s ${JSON.stringify(c.text ?? '')?.slice(0, 90)}`).join(' | ')}; left: ${result.left.join(' ') || '-'}; ended: ${result.ended}`);
    all.results = [...all.results.filter((r) => r.case !== caseName || r.setup !== setupName), result];
    writeFileSync(record, `${JSON.stringify(all, null, 1)}\n`);
  }
}
