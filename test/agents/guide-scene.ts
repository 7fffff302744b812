/** The snippets of docs/guides/coding-agents.md, run as a reader would run them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { type NpmProgram, type NpmProgramOptions, npmProgram } from '../../src/testing/process/npm-program.ts';
import { toldBy } from './agent-scene.ts';

const GUIDE = path.join(import.meta.dirname, '..', '..', 'docs', 'guides', 'coding-agents.md');
const ADDRESS = 'http://127.0.0.1:8484';
const GREETING = 'Hello from behind the gateway.';
const RUN_MS = 110_000;

/** By their headings in the guide. */
export const PROGRAMS: Readonly<Record<string, NpmProgramOptions>> = {
  'Claude Code': { package: '@anthropic-ai/claude-code', version: '2.1.332', command: 'claude', scripts: true },
  Codex: { package: '@openai/codex', version: '0.171.0', command: 'codex' },
  opencode: { package: 'opencode-ai', version: '1.18.33', command: 'opencode', scripts: true },
  Cline: { package: 'cline', version: '3.0.65', command: 'cline' },
  Continue: { package: '@continuedev/cli', version: '1.5.47', command: 'cn' },
  'qwen-code': { package: '@qwen-code/qwen-code', version: '0.24.4', command: 'qwen' },
};

interface Snippet {
  /** `~/...` is in the home folder; empty for commands. */
  file: string;
  text: string;
}

/** The code of one section, in order. */
function snippetsOf(heading: string): Snippet[] {
  const [, section] = readFileSync(GUIDE, 'utf8').split(`\n## ${heading}\n`);
  assert.ok(section !== undefined, `the guide has no section ${heading}`);
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(/^```\w+ ?(.*)\n([\s\S]*?)^```$/gm)].map(([, file = '', text = '']) => ({ file, text }));
}

/** The models that the guide names. */
const MODELS = ['anthropic/claude-sonnet-4.5', 'anthropic/claude-haiku-4.5'];

/** Runs the programs' snippets against a gateway; each program must show the model's answer. */
export async function testSnippets(headings: readonly string[]): Promise<void> {
  const programs: [string, NpmProgram][] = [];
  for (const heading of headings) programs.push([heading, await npmProgram(PROGRAMS[heading]!)]);
  const gateways = { chat: await startGuideGateway('chat'), responses: await startGuideGateway('responses') };
  for (const [heading, program] of programs) {
    // Codex brings tools that only its own format has.
    const { url } = heading === 'Codex' ? gateways.responses : gateways.chat;
    test(`the snippet of the guide works | ${heading}`, { skip: program.skip }, (t) =>
      runSnippet(t, heading, program, url),
    );
  }
}

async function startGuideGateway(kind: 'chat' | 'responses'): Promise<Gateway> {
  const providers = Object.fromEntries(MODELS.map((id, index) => [`p${index}`, { kind, model: { id } }]));
  const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) }, { providers });
  for (const provider of Object.keys(providers)) gateway.upstream.script(provider, toldBy(kind, { text: GREETING }));
  return gateway;
}

async function runSnippet(t: TestContext, heading: string, program: NpmProgram, url: string): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-guide-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const home = path.join(folder, 'home');
  const work = path.join(folder, 'work');
  for (const each of [home, work]) mkdirSync(each);
  const snippets = snippetsOf(heading).map(({ file, text }) => ({
    file,
    text: text.replaceAll(ADDRESS, url),
  }));
  for (const { file, text } of snippets) {
    if (file === '') continue;
    const target = file.startsWith('~/') ? path.join(home, file.slice(2)) : path.join(work, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
  }
  const commands = snippets.filter(({ file }) => file === '').map(({ text }) => text);
  assert.equal(commands.length, 1, `${heading} has one snippet of commands`);
  const { code, output } = await shell(t, commands[0]!, work, {
    PATH: `${path.dirname(program.path)}:${path.dirname(process.execPath)}:/usr/bin:/bin`,
    HOME: home,
    TMPDIR: folder,
    GATEHOUSE_KEY: INFERENCE_KEY,
    NO_PROXY: '127.0.0.1',
  });
  assert.equal(code, 0, output);
  assert.ok(output.includes(GREETING), output);
}

function shell(t: TestContext, commands: string, cwd: string, env: Record<string, string>) {
  const child = spawn('sh', ['-e'], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  const killAll = () => {
    // The programs leave servers running, which belong to the group.
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {}
  };
  t.after(killAll);
  const timer = setTimeout(killAll, RUN_MS);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  // Each command reads from nothing, not from the commands that follow it.
  child.stdin.end(commands.replaceAll(/^(?!export )(.+)$/gm, '$1 </dev/null'));
  return new Promise<{ code: number | null; output: string }>((resolve) => {
    child.on('exit', (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
  });
}
