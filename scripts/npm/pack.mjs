// usage: node scripts/npm/pack.mjs VERSION FOLDER
//
// Packs the programs that GoReleaser has built for npm, and describes them to the MCP registry. The main package has the
// programs' launcher, and requires a package for each system, of which npm installs the one that fits. There is no
// install script: package managers warn of those, or do not run them.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

const [version, out] = process.argv.slice(2)
const main = 'mcpdeadline', scope = '@tooldeadline/', page = 'https://github.com/tooldeadline/tooldeadline'
const mcpName = 'io.github.tooldeadline/mcpdeadline' // which the registry looks for in the package
const programs = ['deadline', 'mcpdeadline']

// pack has npm make the tarball of a package of these files, by their names in it.
function pack(about, files) {
  const dir = fs.mkdtempSync('dist/npm-')
  about = {
    name: about.name, version, description: about.description, license: 'MIT', homepage: page,
    repository: { type: 'git', url: `git+${page}.git` }, ...about,
  }
  fs.writeFileSync(`${dir}/package.json`, JSON.stringify(about, null, 2) + '\n')
  for (const [to, from] of Object.entries({ ...files, LICENSE: 'LICENSE' })) {
    fs.mkdirSync(path.dirname(`${dir}/${to}`), { recursive: true })
    fs.cpSync(from, `${dir}/${to}`, { recursive: true })
  }
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', out], { cwd: dir })
}

const required = {}
// In the order in which they were built, which is not always the same.
const built = JSON.parse(fs.readFileSync('dist/artifacts.json')).filter(a => a.type === 'Binary').sort((a, b) => a.path < b.path ? -1 : 1)
for (const system of new Set(built.map(a => `${a.goos}-${a.goarch}`))) {
  const binaries = built.filter(a => `${a.goos}-${a.goarch}` === system)
  const os = binaries[0].goos.replace('windows', 'win32'), cpu = binaries[0].goarch.replace('amd64', 'x64')
  const name = `${scope}${os}-${cpu}`
  required[name] = version
  pack({
    name, description: `The programs of ${main} for one system; install ${main} instead`,
    files: ['bin', 'licences'], os: [os], cpu: [cpu], preferUnplugged: true,
  }, { licences: 'licences', ...Object.fromEntries(binaries.map(a => [`bin/${a.name}`, a.path])) })
}
const launcher = fs.readdirSync('scripts/npm').filter(f => f.endsWith('.js'))
pack({
  name: main, description: 'An MCP proxy with which no tool call hangs, and timeout(1) with a limit on silence', mcpName,
  bin: Object.fromEntries(programs.map(p => [p, `${p}.js`])), man: programs.map(p => `./man/${p}.1`), files: ['*.js', 'man'],
  engines: { node: '>=18' }, optionalDependencies: required,
}, {
  ...Object.fromEntries(launcher.map(f => [f, `scripts/npm/${f}`])),
  ...Object.fromEntries(programs.map(p => [`man/${p}.1`, `cmd/${p}/man/${p}.1`])),
})

// The proxy has no tools of its own, so the server's command is an argument that clients have to ask for.
fs.writeFileSync(`${out}/server.json`, JSON.stringify({
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name: mcpName, title: main, description: 'A proxy in front of any MCP server, with which no tool call hangs', version,
  websiteUrl: `${page}/tree/main/cmd/mcpdeadline`, repository: { url: page, source: 'github', subfolder: 'cmd/mcpdeadline' },
  packages: [{
    registryType: 'npm', identifier: main, version, runtimeHint: 'npx', transport: { type: 'stdio' },
    packageArguments: [
      { type: 'named', name: '-host', description: 'The host whose limit on a call is kept, such as claude-desktop, cline or zed' },
      { type: 'named', name: '-soft', description: 'The time after which a call is answered with a handle and keeps running, such as 40s' },
      { type: 'positional', value: '--' },
      { type: 'positional', valueHint: 'command', description: 'The command of the MCP server, word by word, such as npx -y @modelcontextprotocol/server-everything', isRequired: true, isRepeated: true },
    ],
  }],
}, null, 2) + '\n')
