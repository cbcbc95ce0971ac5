// Writes the tables of docs/hosts.md, and records.go of package hosts, from the records.
//
//	node render.mjs
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { cases, setups } from './cases.mjs';
import { hosts, server as serverName } from './hosts.mjs';

const page = new URL('../../docs/hosts.md', import.meta.url);
export const source = new URL('../../progress/hosts/records.go', import.meta.url);
const marks = ['<!-- measured: written by make hosts -->\n', '<!-- end of measured -->\n'];

// readRecords gives the records there are, in the order of hosts.
export const readRecords = () =>
  Object.keys(hosts).map((name) => new URL(`records/${name}.json`, import.meta.url)).filter((file) => existsSync(file))
    .map((file) => JSON.parse(readFileSync(file, 'utf8')));

// verdict says in a few words what became of a case.
export function verdict(result) {
  if (!result) return '';
  const [left, remains] = [result.left.filter((r) => r !== 'host'), 'left: '];
  const leftover = left.length > 0 ? `${remains}${left.map((r) => (r === 'child' ? 'the process' : `the ${r}`)).join(', ')}` : '';
  if (cases[result.case].kill) return result.ended === 'killed' ? leftover || 'nothing left' : 'not run';
  const calls = result.calls.filter((c) => !c.search);
  if (calls.length === 0) return 'not run';
  const end = calls.findIndex((c, i) => i > 0 && !c.waited);
  const first = calls.slice(0, end < 0 ? undefined : end);
  const words = [answer(first, result)];
  const retries = result.served.filter((tool) => tool === first[0].tool).length;
  if (retries > 1) words.push(`called ${retries} times`);
  if (end > 0 && ['hang', 'deaf', 'crash', 'noise'].includes(result.case)) words.push(`then ${/echo: afterwards/.test(calls.at(-1).text ?? '') ? 'works' : 'fails'}`);
  if (end > 0 && result.case === 'two') words.push(`then ${answer(calls.slice(end), result)}`);
  if (leftover) words.push(leftover);
  return words.join('; ');
}

function answer(calls, { case: name, ended, seconds: whole }) {
  const text = calls.at(-1).text ?? '';
  const seconds = calls[0].seconds;
  if (calls[0].seconds === null || calls[0].seconds === undefined) return ended === 'not by itself' ? `no answer after ${Math.round(whole)} s` : 'the host ends';
  if (/^ask|sample/.test(name)) {
    if (/decline|Denied|cancel|Nothing was decided/.test(text)) return 'declined';
    if (/does not support|-32601|not support/.test(text)) return 'not supported';
    if (/the (person|model): |approved/i.test(text)) return `answered after ${seconds} s`;
  }
  if (calls[0].missing || /no such tool/.test(text)) return 'no such tool';
  if (/finished|exit code: 0|after noise/.test(text)) return calls.length > 1 ? 'arrives' : `arrives after ${seconds} s`;
  if (/wall-clock limit of|s \(idle timeout\)/.test(text)) return calls.length > 1 ? 'told, by the handle' : `told after ${seconds} s`;
  if (/The server (ended|exited|was)|the server (ended|exited|has|was)/.test(text)) return 'told why';
  if (/The id .* is unknown|is one of the server/.test(text)) return 'lost, the wrong server is asked';
  return name === 'crash' ? 'an error' : `lost after ${seconds} s`;
}

// table has a row for each case and setup. A column is a host.
export function table(records) {
  const rows = [`| Case | Server | ${records.map((r) => hosts[r.host].title).join(' | ')} |`, `|---|---|${'---|'.repeat(records.length)}`];
  for (let [name, { title }] of Object.entries(cases)) {
    for (const setup of Object.keys(setups)) {
      const cells = records.map((r) => verdict(r.results.find((x) => x.case === name && x.setup === setup)));
      if (!cells.some(Boolean)) continue;
      rows.push(`| ${title} | ${setup} | ${cells.map((c) => c || '–').join(' | ')} |`);
      title = ''; // it stands in the first row of the case
    }
  }
  return rows.join('\n');
}

// hostTable says which hosts were run, and what they said of themselves.
export function hostTable(records) {
  const rows = ['| Host | Version | Day | Limit | Protocol | Capabilities | Progress token |', '|---|---|---|---|---|---|---|'];
  for (const r of records) {
    const spoke = r.results.find((x) => x.client)?.client ?? {};
    const days = [...new Set(r.results.map((x) => x.day))].sort();
    const cells = [hosts[r.host].title, r.version, days.at(-1), hosts[r.host].endless ? 'none' : `${r.limit} s`, spoke.protocol ?? '?', spoke.capabilities?.join(', ') || 'none', r.results.some((x) => x.setup === 'bare' && x.token) ? 'yes' : 'no']; // the proxy asks for progress by itself
    rows.push(`| ${cells.join(' | ')} |`);
  }
  return rows.join('\n');
}

// render gives the page with the tables of the records in their place.
export function render(text, records) {
  const [from, to] = [text.indexOf(marks[0]), text.indexOf(marks[1])];
  if (from < 0 || to < from) throw new Error('docs/hosts.md lacks the marks of what is measured');
  const servers = Object.entries(setups).map(([name, { title }]) => `- ${name}: ${name === 'bare' ? 'the server itself' : `\`${title}\``}`).join('\n');
  return `${text.slice(0, from)}${marks[0]}\n${hostTable(records)}\n\nThe servers are\n\n${servers}\n\n${table(records)}\n\n${text.slice(to)}`;
}

// goSource gives the records as Go: what the hosts call themselves, and what they do with continuations.
export function goSource(records) {
  const rows = records.map((r) => {
    const { client } = r.results.find((x) => x.client);
    const soft = r.results.find((x) => x.case === 'silent' && x.setup === 'soft');
    const named = client.name.replace(new RegExp(`-${serverName}$`), '-*'); // the host adds the name of the server
    const fields = [`Client: ${JSON.stringify(named)}`];
    if (verdict(soft) === 'arrives') fields.push('Continues: true');
    if (hosts[r.host].plain) fields.push('Plain: true');
    return [`${JSON.stringify(hosts[r.host].known)}:`, `{${fields.join(', ')}},`];
  }).sort();
  const width = Math.max(...rows.map(([key]) => key.length));
  const lines = rows.map(([key, value]) => `\t${key.padEnd(width)} ${value}\n`);
  return `// Code generated by make hosts. DO NOT EDIT.\n\npackage hosts\n\nvar records = map[string]Host{\n${lines.join('')}}\n`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const text = readFileSync(page, 'utf8');
  writeFileSync(fileURLToPath(page), render(text, readRecords()));
  writeFileSync(fileURLToPath(source), goSource(readRecords()));
}
