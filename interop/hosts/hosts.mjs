// The hosts that can be run: what to install, how to configure one server, and how to give a task without a
// person at the keyboard. Each speaks to the scripted model, and has neither a key nor a network.
import { join } from 'node:path';
import { hostLimit } from './cases.mjs';

const prompt = 'Follow the script.';
export const server = 'lab'; // the name of the server in each host's configuration
const json = (value) => JSON.stringify(value, null, 2);

// A host has
//
//	title            as in the table
//	package, version what npm installs; or module, what go installs
//	trusting         whether it offers no tool of a server in this way unless it is to ask nobody
//	plain            whether it does not prefix the names of tools with that of the server
//	known            what mcpdeadline -host calls it, if it knows it
//	limit            of a tool call, in seconds, as configured, or its own
//	usual            that which it has if nobody has set one, or what the cases take it to be if it has none
//	endless          whether it has no limit; then limit is what the cases take it to be
//	files            what its home has, by name below it
//	command          how it is started in the folder work: program and arguments
//	env              what its environment has beside HOME, PATH and the like
//
// The functions get { dir, home, work, node, model, server, second, trusting, limit }: the folder of the installation, that of this run,
// the Node to use, the model's URL, the server's command that of
// another server in the cases that have one, whether the host is to ask nobody, and the limit to
// set, or undefined. server is [program, ...arguments].
export const hosts = {
  codex: {
    title: 'Codex', version: '0.169.0', limit: hostLimit, usual: 300,
    package: '@openai/codex', known: 'codex',
    files: ({ model, server: [command, ...args], limit }) => ({
      '.codex/config.toml': [
        'model = "scripted"', 'model_provider = "scripted"', 'check_for_update_on_startup = false', '[analytics]', 'enabled = false',
        '[model_providers.scripted]', 'name = "scripted"', `base_url = "${model}/v1"`, 'wire_api = "responses"', 'env_key = "MODEL_KEY"',
        'request_max_retries = 0', 'stream_max_retries = 0',
        `[mcp_servers.${server}]`, `command = ${JSON.stringify(command)}`, `args = ${JSON.stringify(args)}`,
        ...(limit ? [`tool_timeout_sec = ${limit}`] : []), 'startup_timeout_sec = 60', 'required = true', '',
      ].join('\n'),
    }),
    command: ({ dir, node, trusting }) => [
      node, join(dir, 'node_modules/.bin/codex'), 'exec', '--skip-git-repo-check',
      ...(trusting ? ['--dangerously-bypass-approvals-and-sandbox'] : []), prompt,
    ],
    env: () => ({ MODEL_KEY: 'none' }),
  },
  gemini: {
    title: 'Gemini CLI', version: '0.61.0', limit: hostLimit, usual: 600, trusting: true,
    package: '@google/gemini-cli', known: 'gemini-cli',
    files: ({ server: [command, ...args], trusting, limit }) => ({
      '.gemini/settings.json': json({
        security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
        privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false },
        mcpServers: { [server]: { command, args, timeout: limit && 1000 * limit, trust: trusting } },
      }),
    }),
    command: ({ dir, node, trusting }) => [
      node, join(dir, 'node_modules/.bin/gemini'), '--model', 'gemini-2.5-flash', ...(trusting ? ['--approval-mode', 'yolo'] : []), '--prompt', prompt,
    ],
    env: ({ model }) => ({ GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_TRUST_WORKSPACE: 'true' }),
  },
  opencode: {
    title: 'opencode', version: '1.18.33', limit: hostLimit, usual: 60,
    package: 'opencode-ai', known: 'opencode',
    files: ({ model, server: command, limit }) => ({
      '.config/opencode/opencode.json': json({
        model: 'scripted/scripted', small_model: 'scripted/scripted', autoupdate: false, share: 'disabled',
        provider: {
          scripted: {
            npm: '@ai-sdk/openai-compatible', name: 'scripted', options: { baseURL: `${model}/v1`, apiKey: 'none' },
            models: { scripted: { name: 'scripted', tool_call: true, limit: { context: 1_000_000, output: 10_000 } } },
          },
        },
        mcp: { [server]: { type: 'local', command, enabled: true, timeout: limit && 1000 * limit } },
      }),
    }),
    command: ({ dir }) => [join(dir, 'node_modules/opencode-linux-x64/bin/opencode'), 'run', prompt],
    env: () => ({ OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_LSP_DOWNLOAD: '1' }),
  },
  qwen: {
    title: 'Qwen Code', version: '0.24.4', limit: hostLimit, usual: 600, trusting: true,
    package: '@qwen-code/qwen-code', known: 'qwen-code',
    files: ({ server: [command, ...args], trusting, limit }) => ({
      '.qwen/settings.json': json({
        security: { auth: { selectedType: 'openai' }, folderTrust: { enabled: false } }, general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false },
        mcpServers: { [server]: { command, args, timeout: limit && 1000 * limit, trust: trusting } },
      }),
    }),
    command: ({ dir, node, model, trusting }) => [
      node, join(dir, 'node_modules/.bin/qwen'), '--auth-type', 'openai', '--openai-base-url', `${model}/v1`, '--model', 'scripted',
      ...(trusting ? ['--approval-mode', 'yolo'] : []), prompt,
    ],
    env: () => ({ OPENAI_API_KEY: 'none' }),
  },
  continue: {
    title: 'Continue', version: '1.5.47', limit: 60, usual: 60, // cannot be set
    package: '@continuedev/cli', known: 'continue', plain: true,
    files: ({ model, server: first, second }) => ({
      'config.yaml': json({ // which is YAML too
        name: 'scripted', version: '0.0.1', schema: 'v1',
        models: [{ name: 'scripted', provider: 'openai', model: 'scripted', apiBase: `${model}/v1`, apiKey: 'none', roles: ['chat'], capabilities: ['tool_use'] }],
        mcpServers: [first, second].filter(Boolean).map(([command, ...args], i) => ({ name: [server, 'other'][i], command, args })),
      }),
    }),
    command: ({ dir, node, home }) => [node, join(dir, 'node_modules/.bin/cn'), '--config', join(home, 'config.yaml'), '--auto', '-p', prompt],
    env: () => ({ CONTINUE_TELEMETRY_ENABLED: '0', CONTINUE_METRICS_ENABLED: '0', CONTINUE_ALLOW_ANONYMOUS_TELEMETRY: '0' }),
  },
  cline: {
    title: 'Cline', version: '3.0.65', limit: hostLimit, usual: 60,
    package: 'cline', known: 'cline',
    files: ({ model, server: [command, ...args], limit }) => ({
      '.cline/data/settings/providers.json': json({
        version: 1, lastUsedProvider: 'openai-compatible', modes: {},
        providers: {
          'openai-compatible': {
            settings: { provider: 'openai-compatible', apiKey: 'none', model: 'scripted', baseUrl: `${model}/v1` },
            updatedAt: '2026-01-01T00:00:00.000Z', tokenSource: 'manual',
          },
        },
      }),
      '.cline/data/settings/cline_mcp_settings.json': json({ mcpServers: { [server]: { command, args, timeout: limit } } }),
    }),
    command: ({ dir }) => [join(dir, 'node_modules/@cline/cli-linux-x64/bin/cline'), prompt],
    env: () => ({ CLINE_NO_INTERACTIVE: '1' }),
  },
  claude: {
    title: 'Claude Code', version: '2.1.331', limit: hostLimit, usual: 60,
    package: '@anthropic-ai/claude-code', known: 'claude-code',
    files: ({ server: [command, ...args] }) => ({ 'mcp.json': json({ mcpServers: { [server]: { type: 'stdio', command, args } } }) }),
    command: ({ dir, home }) => [
      join(dir, 'node_modules/@anthropic-ai/claude-code-linux-x64/claude'), '--print', '--model', 'claude-sonnet-4-5', '--mcp-config', join(home, 'mcp.json'), '--strict-mcp-config',
      '--allowedTools', `mcp__${server}`, '--', prompt,
    ],
    env: ({ model, limit }) => ({
      ANTHROPIC_BASE_URL: model, ANTHROPIC_API_KEY: 'none', ...(limit && { MCP_TOOL_TIMEOUT: String(1000 * limit) }),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', DISABLE_TELEMETRY: '1', DISABLE_ERROR_REPORTING: '1',
    }),
  },
  crush: {
    title: 'Crush', version: 'v0.90.0', limit: hostLimit, usual: 60, endless: true,
    module: 'github.com/charmbracelet/crush', known: 'crush',
    files: ({ model, server: [command, ...args] }) => ({
      '.config/crush/crush.json': json({
        providers: {
          scripted: {
            type: 'openai-compat', base_url: `${model}/v1`, api_key: 'none',
            models: [{ id: 'scripted', name: 'scripted', context_window: 1_000_000, default_max_tokens: 10_000 }],
          },
        },
        models: { large: { provider: 'scripted', model: 'scripted' }, small: { provider: 'scripted', model: 'scripted' } },
        mcp: { [server]: { type: 'stdio', command, args, timeout: 60 } },
      }),
    }),
    command: ({ dir }) => [join(dir, 'bin/crush'), 'run', '--quiet', prompt],
    env: () => ({ CRUSH_DISABLE_PROVIDER_AUTO_UPDATE: '1', CRUSH_DISABLE_METRICS: '1' }),
  },
};
