'use strict'
// Returns the environment for a program that npx, npm exec, pnpm dlx, yarn dlx or bunx has been called for: the one that
// they were called with, but for PATH, which leads to the packages of the call. What they set is for this call. To
// another npx it would say that this call's packages are the ones that it has to run, and to another Node whose modules
// to load. What was set on the way from them, as by a shell of npx -c, stays, and so does everything below npm run.

const fs = require('fs')

const theirs = /^(npm_|pnpm_|node$|node_path$|node_options$|init_cwd$|project_cwd$|berry_bin_folder$|color$|editor$)/i
const caller = new RegExp('^(\\S*\\bnode (-\\S* )*)?(\\S*/)?((npx|npx-cli\\.js|pnpx|bunx)(\\.exe)? ' +
  '|(npm|npm-cli\\.js|pnpm|pnpm\\.cjs|yarn|yarn\\.js|yarn-berry\\.cjs|bun)(\\.exe)? (-\\S* )*(exec|x|dlx) )')
const shell = /^\S*\b(sh|bash|dash|ash|ksh|zsh|busybox)$/

module.exports = function environment (program) {
  const env = { ...process.env }
  const found = process.platform === 'linux' ? origin() : undefined
  if (found) {
    const { before, given } = found
    for (const name of Object.keys({ ...env, ...before })) {
      if (!theirs.test(name) || env[name] !== given[name] || assigned(env, name)) continue
      if (name in before) env[name] = before[name]
      else delete env[name]
    }
  } else if (env.npm_command === 'exec' && /^(npx|bunx)$/.test(env.npm_lifecycle_event) &&
      (env.npm_lifecycle_script || '').includes(program)) {
    // Nothing shows what there was before, so only what nobody sets by hand is left out.
    for (const name of Object.keys(env)) {
      if (/^npm_(command|execpath|node_execpath|lifecycle_.*|package_.*)$/.test(name) ||
        /^npm_config_(package|call|local_prefix|node_gyp|npm_version|user_agent)$/.test(name)) delete env[name]
    }
  }
  return env
}

// assigned reports whether the script of npx -c sets a variable itself.
function assigned (env, name) { return (env.npm_lifecycle_script || '').includes(name + '=') }

// origin finds the process that was called for this one, at most behind a few shells, and returns the environment that it
// was started with, and the one that it gave.
function origin () {
  try {
    let given = process.env
    let pid = process.ppid
    for (let steps = 0; steps < 4; steps++) {
      const args = list(pid, 'cmdline')
      if (!shell.test(args[0])) return caller.test(args.join(' ') + ' ') ? { before: variables(pid), given } : undefined
      given = variables(pid)
      pid = Number(/^PPid:\s*(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1])
    }
  } catch {} // hidden, or gone
}

function list (pid, file) { return fs.readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0').filter(s => s) }

function variables (pid) {
  return Object.fromEntries(list(pid, 'environ').map(s => [s.slice(0, s.indexOf('=')), s.slice(s.indexOf('=') + 1)]))
}
