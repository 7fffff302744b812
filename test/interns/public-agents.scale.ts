/**
 * Public agents as interns run them: the real programs, unmodified, against a scripted model behind a gateway. Each does a task
 * with its shell, once with consent and once without, and continues its session in a new process.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { type AgentProfile, agentProfiles } from '../../src/interns/agents/index.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { type NpmProgram, npmProgram } from '../../src/testing/process/npm-program.ts';
import { Heard, option, type RunningAgent, startAgent } from './agent-process.ts';
import { ScriptedModel, urlOf } from './scripted-model.ts';

/** Some agents refuse to run as root. */
const USER = process.getuid?.() === 0 ? 65_534 : undefined;

const PROGRAMS: Record<string, { installed: NpmProgram; canLoad: boolean }> = {
  opencode: {
    installed: await npmProgram({ package: 'opencode-ai', version: '1.18.33', command: 'opencode' }),
    canLoad: true,
  },
  claude: {
    installed: await npmProgram({
      package: '@agentclientprotocol/claude-agent-acp',
      version: '0.101.0',
      command: 'claude-agent-acp',
    }),
    canLoad: true,
  },
  qwen: {
    installed: await npmProgram({ package: '@qwen-code/qwen-code', version: '0.24.4', command: 'qwen' }),
    canLoad: true,
  },
};

/** What the way out of the sandbox does: it adds the key. */
function addKey(request: IncomingMessage, response: ServerResponse): void {
  const { 'x-api-key': _none, ...others } = request.headers;
  const headers = { ...others, authorization: `Bearer ${INFERENCE_KEY}` };
  const onward = http.request(
    `${gateway.url}${request.url}`,
    { method: request.method ?? 'GET', headers },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    },
  );
  request.pipe(onward);
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
}

after(() => {
  model.stop();
  forwarder.close();
  forwarder.closeAllConnections();
});

const model = new ScriptedModel();
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { scripted: { base_url: await model.start() } } },
);
const forwarder = http.createServer(addKey);
forwarder.listen(0, '127.0.0.1');
await once(forwarder, 'listening');

function folders(t: TestContext): { home: string; workspace: string } {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-public-agent-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const [home, workspace] = [path.join(folder, 'home'), path.join(folder, 'workspace')];
  for (const made of [home, workspace]) mkdirSync(made);
  if (USER !== undefined) for (const made of [folder, home, workspace]) chownSync(made, USER, USER);
  return { home, workspace };
}

for (const [name, { installed, canLoad }] of Object.entries(PROGRAMS)) {
  test(`${name}: a command with consent, one without, and the session in a new process`, {
    skip: installed.skip,
  }, async (t) => {
    const program = name as 'opencode' | 'claude' | 'qwen';
    const folder = path.join(path.dirname(installed.path), '..', '..');
    chmodSync(folder, 0o755);
    const installations = [{ name, program, folder, command: [] }];
    const profile = agentProfiles(systemClock, installations, folder).get(name) as AgentProfile;
    const places = { ...folders(t), gateway: `${urlOf(forwarder)}/api/v1` };
    const settings = { instructions: 'Say little.', model: 'test/scripted' };
    const start = () => startAgent(profile, settings, places, USER);
    let agent: RunningAgent = await start();
    t.after(() => agent.stop());

    model.turns = [({ shell }) => shell('echo made > made.txt'), () => ({ text: 'It is made.' })];
    const session = await agent.connection.openSession(null, []);
    const heard = new Heard(option('allow_once'));
    const end = await session.prompt({ text: 'Make made.txt', mode: 'manual' }, heard);
    assert.equal(end.outcome, 'complete', JSON.stringify(end));
    assert.match(heard.text, /It is made\./);
    assert.equal(heard.questions.length, 1, JSON.stringify(heard.questions));
    assert.deepEqual(
      [heard.questions[0]?.kind, (heard.questions[0] as { operation?: string }).operation],
      ['permission', 'shell'],
    );
    assert.equal(readFileSync(path.join(places.workspace, 'made.txt'), 'utf8'), 'made\n');

    model.turns = [({ shell }) => shell('echo no > forbidden.txt'), () => ({ text: 'Then not.' })];
    await session.prompt({ text: 'Make forbidden.txt', mode: 'manual' }, new Heard(option('reject_once')));
    assert.equal(existsSync(path.join(places.workspace, 'forbidden.txt')), false);

    model.turns = [({ shell }) => shell('echo free > free.txt'), () => ({ text: 'Done.' })];
    const free = new Heard(...Array.from({ length: 5 }, () => option('allow_once')));
    await session.prompt({ text: 'Make free.txt', mode: 'self-drive' }, free);
    assert.equal(existsSync(path.join(places.workspace, 'free.txt')), true);

    if (!canLoad) return;
    await agent.stop();
    agent = await start();
    const loaded = await agent.connection.openSession(session.id, []);
    assert.equal(loaded.id, session.id);
    const from = model.requests.length;
    model.turns = [() => ({ text: 'You asked for made.txt.' })];
    const again = new Heard();
    await loaded.prompt({ text: 'What did I ask for first?', mode: 'manual' }, again);
    assert.match(again.text, /You asked for made\.txt\./);
    assert.match(JSON.stringify(model.requests[from]?.messages), /Make made\.txt/);
  });
}
