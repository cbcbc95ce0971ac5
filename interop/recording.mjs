// Records how a call that takes 20 s ends at a client that waits for 10 s, with a server that nobody
// here wrote: alone, and behind cmd/mcpdeadline. Writes the picture to the file that is named, and
// the text to stdout. scripts/recording runs it.
import { writeFile } from 'node:fs/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [proxy, file] = process.argv.slice(2);
const everything = ['node', 'proxied/node_modules/@modelcontextprotocol/server-everything/dist/index.js'];
const lines = []; // [kind, text]
const write = (kind, text) => {
  lines.push([kind, text]);
  console.log(text);
};

// wrapped breaks a text into lines of at most width characters.
const wrapped = (text, width) => text.replace(new RegExp(`(.{1,${width}})(?: +|$)`, 'gm'), '$1\n').trimEnd().split(/\n+/);

async function record(title, command) {
  write('command', `$ ${title}`);
  const client = new Client({ name: 'recording', version: '1' });
  await client.connect(new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'ignore' }));
  const began = performance.now();
  const at = () => `${((performance.now() - began) / 1000).toFixed(1).padStart(5)} s  `;
  const call = async (name, args) => {
    write('call', `${at()}→ ${name} ${JSON.stringify(args)}`);
    try {
      const { content, isError } = await client.callTool({ name, arguments: args }, undefined, { timeout: 10_000 });
      const [first, ...rest] = wrapped(content[0].text, 88);
      write(isError ? 'bad' : 'good', `${at()}← ${first}`);
      for (const line of rest) write(isError ? 'bad' : 'good', `           ${line}`);
      return content[0].text;
    } catch (err) {
      write('bad', `${at()}✗ ${err.message}`);
      return '';
    }
  };
  let text = await call('trigger-long-running-operation', { duration: 20, steps: 4 });
  for (let id; (id = /wait_for_result with (\{.*?\})/.exec(text)?.[1]);) text = await call('wait_for_result', JSON.parse(id));
  await client.close();
  write('', '');
}

await record('npx -y @modelcontextprotocol/server-everything', everything);
await record('mcpdeadline -soft 8s -- npx -y @modelcontextprotocol/server-everything', [proxy, '-soft', '8s', '--', ...everything]);
lines.pop();

const colours = { command: '#ffffff', call: '#a8b3c4', good: '#7ee2a8', bad: '#ff8f85' };
const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const height = 22 * lines.length + 36;
await writeFile(file, `<svg xmlns="http://www.w3.org/2000/svg" width="880" height="${height}" viewBox="0 0 880 ${height}" role="img">
<title>A call of 20 s at a client that waits for 10 s: lost without mcpdeadline, saved with it</title>
<rect width="880" height="${height}" rx="8" fill="#161b22"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">
${lines.map(([kind, text], i) => `<text x="20" y="${32 + 22 * i}" fill="${colours[kind] ?? '#fff'}">${escape(text)}</text>`).join('\n')}
</g>
</svg>
`);
