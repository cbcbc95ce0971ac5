// A client to be killed: calls a tool that does not answer, and says that it has.
//
//	node lib/client.mjs <driver> <marker> [<url>]
import { silent } from './commands.mjs';
import { drivers } from './drivers.mjs';

const [name, marker, url] = process.argv.slice(2);
const client = await drivers.find((d) => d.name === name).connect({ url });
console.log(client.pid ?? '');
await client.call('run_command', silent(marker), { timeout: 600_000, onprogress() {} });
