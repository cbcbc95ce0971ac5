'use strict'
// Runs a program of the package that npm has installed for this system. Where Node can replace its own
// process (22.15 and 23.11 on, except on Windows), the program takes over the process, so that
// signals, stdin and the exit code are the program's. Elsewhere it is a child.

const { spawn } = require('child_process')
const fs = require('fs')
const os = require('os')
const environment = require('./environment.js')

module.exports = function launch (program) {
  const system = `${process.platform}-${process.arch}`
  const name = `@tooldeadline/${system}`
  const file = process.platform === 'win32' ? `${program}.exe` : program
  const args = process.argv.slice(2)

  let path
  try {
    path = require.resolve(`${name}/bin/${file}`)
  } catch {
    return fail(127, `package ${name} is not installed. Either there is none for this system, or npm was told to ` +
      'leave out optional dependencies: install again without --omit=optional and --no-optional. ' +
      'With Go: go install github.com/tooldeadline/tooldeadline/cmd/' + program + '@latest')
  }
  try {
    fs.accessSync(path, fs.constants.X_OK) // execve would end Node with a message of its own
  } catch (err) {
    return fail(126, err.message)
  }
  const env = environment(program)
  if (process.execve && process.platform !== 'win32') {
    process.execve(path, [program, ...args], env)
  }

  // The program is told its launcher's process id, to end with it if it is killed.
  const child = spawn(path, args, {
    argv0: program,
    stdio: 'inherit',
    env: { ...env, TOOLDEADLINE_LAUNCHER: String(process.pid) }
  })
  child.on('error', err => fail(err.code === 'ENOENT' ? 127 : 126, err.message))
  const passed = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGALRM']
    .filter(signal => signal in os.constants.signals)
  for (const signal of passed) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code)
    for (const s of passed) process.removeAllListeners(s)
    process.kill(process.pid, signal)
    setTimeout(() => process.exit(128 + os.constants.signals[signal]), 1000) // the signal was ignored
  })

  function fail (code, text) {
    fs.writeSync(2, `${program}: ${text}\n`)
    process.exit(code)
  }
}
