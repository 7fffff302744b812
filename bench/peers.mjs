/**
 * Other gateways, measured in the same run (`--peers`): installed in pinned versions from their package registries, and started
 * in their default documented configuration with the mock upstream as a provider of OpenAI's interface.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { startPortkey, subject } from './subjects.mjs';
import { freePort, listening, need, SUBJECT_CORE, start } from './tools.mjs';

const run = promisify(execFile);

export const PEERS = ['portkey', 'litellm'];
/** Cases that every peer can be measured in; the others need formats or rates that some of them do not reach. */
export const PEER_CASES = ['1 KB, saturated', '100 KB, saturated', '5 streams relayed, paced'];
/** Peers that no package registry has as a module that can be built alone. */
export const LEFT_OUT = {
  bifrost:
    'the module proxy does not have its Go module transports/bifrost-http, and its npm package downloads a binary',
  agentgateway: 'it has no crate',
};

const PORTKEY = { '@portkey-ai/gateway': '1.15.2' };
/** The versions that its streams need (README.md). */
const PORTKEY_OVERRIDES = { '@hono/node-server': '1.3.3', hono: '4.9.7' };
const LITELLM = 'litellm[proxy]==1.106.12';

/** Installs both below `folder`, unless an earlier run has. */
export async function installPeers(folder) {
  mkdirSync(folder, { recursive: true });
  await Promise.all([installPortkey(path.join(folder, 'portkey')), installLitellm(path.join(folder, 'litellm'))]);
}

async function installPortkey(folder) {
  if (existsSync(path.join(folder, 'node_modules/@portkey-ai/gateway'))) return;
  mkdirSync(folder, { recursive: true });
  const manifest = { private: true, dependencies: PORTKEY, overrides: PORTKEY_OVERRIDES };
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
  await run('npm', ['install', '--no-audit', '--no-fund'], { cwd: folder });
}

async function installLitellm(folder) {
  if (existsSync(litellmProgram(folder))) return;
  need('python3', 'install it (Debian: apt-get install python3-venv)');
  await run('python3', ['-m', 'venv', path.join(folder, 'venv')]);
  await run(path.join(folder, 'venv/bin/pip'), ['install', '-q', LITELLM]);
}

function litellmProgram(folder) {
  return path.join(folder, 'venv/bin/litellm');
}

/** @returns functions that start a peer each */
export function peerStarts(installed, folder, upstreamPort) {
  return [
    () => startPortkey(path.join(installed, 'portkey'), upstreamPort),
    () => startLitellm(path.join(installed, 'litellm'), folder, upstreamPort),
  ];
}

/** One worker, which is the default; model prices are those of the package, so that it makes no requests for them. */
async function startLitellm(installed, folder, upstreamPort) {
  const port = await freePort();
  const config = path.join(folder, 'litellm.yaml');
  const parameters = { model: 'openai/m', api_base: `http://127.0.0.1:${upstreamPort}/v1`, api_key: 'upstream-key' };
  writeFileSync(
    config,
    JSON.stringify({
      model_list: [{ model_name: 'm', litellm_params: parameters }],
      general_settings: { master_key: 'sk-bench' },
    }),
  );
  const env = { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
  const args = ['--config', config, '--port', String(port), '--host', '127.0.0.1'];
  const started = start(SUBJECT_CORE, litellmProgram(installed), args, { cwd: folder, env });
  await listening(port, started, 'litellm');
  const found = subject('litellm', port, started, { chat: { path: '/v1/chat/completions', model: 'm' } });
  found.headers = ['Authorization: Bearer sk-bench'];
  return found;
}
