// Prints what installs a host, and what is to be installed: npm NAME@VERSION, or go PATH@VERSION.
import { hosts } from './hosts.mjs';

const host = hosts[process.argv[2]];
if (!host) {
  console.error(`make hosts: no host ${JSON.stringify(process.argv[2] ?? '')}; there are ${Object.keys(hosts).join(', ')}`);
  process.exit(2);
}
console.log(host.module ? `go ${host.module}@${host.version}` : `npm ${host.package}@${host.version}`);
