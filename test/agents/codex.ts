/** The Codex CLI as its users run it: `codex exec` with a provider of its own in `config.toml`, and an MCP server. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { type NpmProgram, npmProgram, type ProgramRun } from '../../src/testing/process/npm-program.ts';

export interface CodexEvent {
  type: string;
  message?: string;
  item?: { type: string; [member: string]: unknown };
  [member: string]: unknown;
}

export interface CodexRun extends ProgramRun {
  events: CodexEvent[];
  /** Items that were finished, in order. */
  items: { type: string; [member: string]: unknown }[];
}

export interface CodexOptions {
  baseUrl: string;
  key: string;
  model: string;
  prompt: string;
  /** Further lines of `config.toml`, above its tables. */
  config?: readonly string[];
}

export function codex(): Promise<NpmProgram> {
  return npmProgram({ package: '@openai/codex', version: '0.171.0', command: 'codex' });
}

const MCP_SERVER = path.join(import.meta.dirname, 'mcp-server.ts');
/** Codex refuses a home in the temporary folder of the machine. */
const HOMES = path.join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'codex-homes');

export async function runCodex(
  test: Pick<TestContext, 'after'>,
  program: NpmProgram,
  options: CodexOptions,
): Promise<CodexRun> {
  mkdirSync(HOMES, { recursive: true });
  const home = mkdtempSync(path.join(HOMES, 'home-'));
  test.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 3 }));
  const lines = [
    `model = ${JSON.stringify(options.model)}`,
    'model_provider = "gatehouse"',
    'approval_policy = "never"',
    'sandbox_mode = "danger-full-access"',
    ...(options.config ?? []),
    '[model_providers.gatehouse]',
    'name = "Gatehouse"',
    `base_url = ${JSON.stringify(options.baseUrl)}`,
    'env_key = "GATEHOUSE_KEY"',
    'wire_api = "responses"',
    '[mcp_servers.notes]',
    `command = ${JSON.stringify(process.execPath)}`,
    `args = [${JSON.stringify(MCP_SERVER)}]`,
  ];
  writeFileSync(path.join(home, 'config.toml'), `${lines.join('\n')}\n`);
  const args = ['exec', '--skip-git-repo-check', '--json', options.prompt];
  const run = await program.run(test, args, { env: { CODEX_HOME: home, GATEHOUSE_KEY: options.key } });
  const events = run.output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as CodexEvent);
  const items = events.flatMap(({ type, item }) => (type === 'item.completed' && item !== undefined ? [item] : []));
  return { ...run, events, items };
}
