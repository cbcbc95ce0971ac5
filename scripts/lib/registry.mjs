// usage: registry.mjs FOLDER: an npm registry on loopback with the tarballs of a folder. Prints its address.
import { createHash } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'

const packages = {}
const files = {}
for (const file of readdirSync(process.argv[2]).filter(f => f.endsWith('.tgz'))) {
  const path = join(process.argv[2], file)
  const about = JSON.parse(execFileSync('tar', ['-xzOf', path, 'package/package.json']))
  const bytes = files['/-/' + file] = readFileSync(path)
  packages[about.name] = { file, about, integrity: 'sha512-' + createHash('sha512').update(bytes).digest('base64') }
}
const server = createServer((request, response) => {
  const url = decodeURIComponent(request.url.split('?')[0])
  if (files[url]) return response.end(files[url])
  const found = packages[url.slice(1)]
  if (!found) return response.writeHead(404).end('{}')
  const { file, about, integrity } = found
  const dist = { integrity, tarball: `http://${request.headers.host}/-/${file}` }
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ name: about.name, 'dist-tags': { latest: about.version }, versions: { [about.version]: { ...about, dist } } }))
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/`))
