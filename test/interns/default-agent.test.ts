/** The default agent as a process, driven over its protocol as an intern's run drives it, with a scripted model. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { bundleAgent } from '../../build/agent.ts';
import { systemClock } from '../../src/base/clock.ts';
import {
  type AgentAnswer,
  AgentGone,
  type AgentProfile,
  type ApprovalMode,
  agentProfiles,
} from '../../src/interns/agents/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { answerOf, errorOf, streamOf, type Told } from '../../src/testing/upstream/answers.ts';
import { startUpstream, type Upstream } from '../../src/testing/upstream/upstream.ts';
import { Heard, option, type RunningAgent, startAgent } from './agent-process.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-agent-'));
const workspace = path.join(folder, 'workspace');
const home = path.join(folder, 'home');
const agentFolder = path.join(folder, 'agent');
const profile = agentProfiles(systemClock, [], agentFolder).get('gatehouse') as AgentProfile;
let upstream: Upstream;
let agent: RunningAgent;

/** Lets the model answer like this, in turn. */
function script(...turns: Told[]): void {
  upstream.script(
    'model',
    turns.map((told) => answerOf('chat', true, told)),
  );
}

const call = (name: string, args: object, id = 'call_1') => ({ id, name, arguments: JSON.stringify(args) });

/** Bodies of the model calls since `from`. */
function asked(
  from = 0,
): { messages: { role: string; content: string | null }[]; tools: { function: { name: string } }[] }[] {
  return upstream
    .requests('model')
    .slice(from)
    .map(({ json }) => json as never);
}

function start(): Promise<RunningAgent> {
  const settings = { instructions: 'Be brief.', model: 'acme/scripted' };
  return startAgent(profile, settings, { home, workspace, gateway: `${upstream.url}/model` });
}

async function prompt(text: string, mode: ApprovalMode, heard: Heard, known: string | null = null) {
  const session = await agent.connection.openSession(known, []);
  return { session, end: await session.prompt({ text, mode }, heard) };
}

const results = (from: number) =>
  asked(from)
    .at(-1)!
    .messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => content);
before(async () => {
  mkdirSync(workspace);
  mkdirSync(home);
  await bundleAgent(agentFolder);
  upstream = await startUpstream();
  agent = await start();
});

after(async () => {
  await agent.stop();
  await upstream.close();
  rmSync(folder, { recursive: true });
});

test('a prompt is answered by the model, with its thoughts, its name and its usage', async () => {
  script({ thinking: { text: 'short' }, text: 'Hello.', usage: { input: 100, cacheRead: 20, output: 7 } });
  const heard = new Heard();
  const { end } = await prompt('Say hello', 'manual', heard);
  assert.equal(heard.text, 'Hello.');
  assert.equal(heard.thought, 'short');
  assert.equal(heard.models.length, 1);
  assert.equal(end.outcome, 'complete');
  assert.deepEqual(end.usage, { promptTokens: 120, completionTokens: 7, cachedTokens: 20 });
  const [first] = asked();
  assert.match(first!.messages[0]!.content!, /standing instructions\n\nBe brief\./);
  assert.deepEqual(
    first!.tools.map(({ function: { name } }) => name),
    [...['shell', 'read_file', 'write_file', 'edit_file', 'search_files', 'fetch', 'ask']],
  );
});

test('in manual mode a command runs only once it is allowed, and the model sees its output', async () => {
  const from = asked().length;
  script({ calls: [call('shell', { command: 'echo out; echo err >&2; exit 3' })] }, { text: 'Done.' });
  const heard = new Heard(option('allow_once'));
  await prompt('Run it', 'manual', heard);
  assert.deepEqual(heard.questions, [
    { kind: 'permission', operation: 'shell', options: ['allow_once', 'allow_always', 'reject_once', 'reject_always'] },
  ]);
  assert.deepEqual(results(from), ['out\nerr\n[exit code 3]']);
});

test('a rejected tool does not run, and the model gets the rejection', async () => {
  const from = asked().length;
  const file = path.join(workspace, 'forbidden');
  script({ calls: [call('shell', { command: `touch ${file}` })] }, { text: 'Then not.' });
  await prompt('Try', 'manual', new Heard(option('reject_once')));
  assert.equal(existsSync(file), false);
  assert.match(results(from)[0]!, /does not allow/);
});

test('always holds for one tool of one session', async () => {
  script(
    { calls: [call('write_file', { path: 'a/b.txt', content: 'one' })] },
    { calls: [call('write_file', { path: 'a/c.txt', content: 'two' }), call('shell', { command: 'true' }, 'call_2')] },
    { text: 'Done.' },
    { calls: [call('write_file', { path: 'a/d.txt', content: 'three' })] },
    { text: 'Done.' },
  );
  const heard = new Heard(option('allow_always'), option('reject_always'));
  const { session } = await prompt('Write', 'manual', heard);
  assert.equal(heard.questions.length, 2);
  assert.equal(readFileSync(path.join(workspace, 'a/c.txt'), 'utf8'), 'two');
  const again = new Heard();
  await prompt('Again', 'manual', again, session.id);
  assert.deepEqual(again.questions, []);

  script({ calls: [call('write_file', { path: 'a/e.txt', content: 'four' })] }, { text: 'Done.' });
  const elsewhere = new Heard(option('reject_once'));
  await prompt('Write', 'manual', elsewhere);
  assert.equal(elsewhere.questions.length, 1);
});

test('in self-drive nothing is asked for, and files are read, edited and searched', async () => {
  const from = asked().length;
  writeFileSync(path.join(workspace, 'sum.js'), 'export const sum = (a, b) => a - b;\nexport const same = 1;\n');
  script(
    {
      calls: [
        call('read_file', { path: 'sum.js' }, 'c1'),
        call('edit_file', { path: 'sum.js', old_text: 'a - b', new_text: 'a + b' }, 'c2'),
        call('edit_file', { path: 'sum.js', old_text: 'export', new_text: 'x' }, 'c3'),
        call('search_files', { pattern: 'a . b', name: '*.js' }, 'c4'),
        call('search_files', { name: '*.txt', folder: 'a' }, 'c5'),
        call('read_file', { path: 'missing.js' }, 'c6'),
        call('no_such_tool', {}, 'c7'),
        call('shell', { cmd: 'ls' }, 'c8'),
        { id: 'c9', name: 'shell', arguments: '{"command":' },
      ],
    },
    { text: 'Fixed.' },
  );
  const heard = new Heard();
  await prompt('Fix sum.js', 'self-drive', heard);
  assert.deepEqual(heard.questions, []);
  assert.match(readFileSync(path.join(workspace, 'sum.js'), 'utf8'), /a \+ b/);
  const [read, edited, ambiguous, found, names, missing, unknown, wrong, cutOff] = results(from);
  assert.match(read!, /a - b/);
  assert.match(edited!, /replaced 1 occurrence/);
  assert.match(ambiguous!, /contains old_text 2 times/);
  assert.match(found!, /sum\.js:1:/);
  assert.match(names!, /a\/b\.txt/);
  assert.match(missing!, /there is no file/);
  assert.match(unknown!, /there is no tool no_such_tool/);
  assert.match(wrong!, /shell needs command/);
  assert.match(cutOff!, /not JSON/);
});

test('a question reaches the person, and the answer the model', async () => {
  const from = asked().length;
  script({ calls: [call('ask', { question: 'Which?', choices: ['red', 'blue'] })] }, { text: 'Blue it is.' });
  const heard = new Heard({ action: 'accept', content: { answer: 'blue' } });
  await prompt('Choose', 'self-drive', heard);
  assert.deepEqual(heard.questions, [
    {
      kind: 'elicitation',
      message: 'Which?',
      fields: [{ name: 'answer', type: 'string', required: true, options: ['red', 'blue'] }],
    },
  ]);
  assert.deepEqual(results(from), ['blue']);
});

test('a message during a turn reaches the next model call of that turn', async () => {
  const from = asked().length;
  script({ calls: [call('shell', { command: 'true' })] }, { text: 'Both done.' });
  const { promise: isAsked, resolve } = Promise.withResolvers<(answer: AgentAnswer) => void>();
  const heard = new Heard();
  heard.question = (_question, reply) => resolve(reply);
  const session = await agent.connection.openSession(null, []);
  const turn = session.prompt({ text: 'First', mode: 'manual' }, heard);
  const reply = await isAsked;
  assert.equal(await session.steer('Second'), true);
  reply(option('allow_once'));
  assert.equal((await turn).outcome, 'complete');
  const messages = asked(from).at(-1)!.messages;
  assert.deepEqual(messages.at(-1), { role: 'user', content: 'Second' });
  assert.equal(await session.steer('Too late'), false);
});

test('a cancelled turn ends its command with all its children, and the session continues', async () => {
  const from = asked().length;
  const marker = path.join(workspace, 'child.pid');
  script({ calls: [call('shell', { command: `sleep 1000 & echo $! > ${marker}; wait` })] }, { text: 'Better now.' });
  const session = await agent.connection.openSession(null, []);
  const turn = session.prompt({ text: 'Wait', mode: 'self-drive' }, new Heard());
  const pid = await until(
    () => (existsSync(marker) ? Number(readFileSync(marker, 'utf8')) || undefined : undefined),
    'the command',
  );
  session.cancel();
  assert.equal((await turn).outcome, 'cancelled');
  await until(() => !existsSync(`/proc/${pid}`), 'its child is gone');
  const heard = new Heard();
  await session.prompt({ text: 'Go on', mode: 'self-drive' }, heard);
  assert.equal(heard.text, 'Better now.');
  assert.deepEqual(results(from), ['cancelled by the person']);
});

test('endless output is cut, and a background process is not waited for', async () => {
  const from = asked().length;
  script(
    {
      calls: [
        call('shell', { command: 'yes | head -c 20000000' }),
        call('shell', { command: 'sleep 1000 & echo started' }, 'call_2'),
      ],
    },
    { text: 'Done.' },
  );
  await prompt('Flood', 'self-drive', new Heard());
  const [flood, background] = results(from);
  assert.ok(flood!.length < 40_000);
  assert.match(flood!, /characters left out/);
  assert.match(background!, /^started\n/);
});

test('a session is known to the next process, also if the last one was killed within a tool', async () => {
  const marker = path.join(workspace, 'killed');
  script({ text: 'The word is plum.' }, { calls: [call('shell', { command: `touch ${marker}; sleep 1000` })] });
  const { session } = await prompt('Remember plum', 'manual', new Heard());
  const turn = session.prompt({ text: 'Hang', mode: 'self-drive' }, new Heard());
  await until(() => existsSync(marker), 'the command runs');
  agent.child.kill('SIGKILL');
  await assert.rejects(turn, AgentGone);
  await agent.connection.gone;
  agent = await start();

  const from = asked().length;
  script({ text: 'Plum.' });
  const heard = new Heard();
  await prompt('Which word?', 'manual', heard, session.id);
  assert.equal(heard.text, 'Plum.');
  const { messages } = asked(from)[0]!;
  assert.equal(messages[1]!.content, 'Remember plum');
  assert.match(results(from)[0]!, /interrupted/);
});

test('an agent that does not know the session gets its log', async () => {
  const from = asked().length;
  script({ text: 'Pear.' });
  const log = [
    { role: 'user', text: 'The word is pear.' },
    { role: 'assistant', text: 'I see.' },
  ] as const;
  const session = await agent.connection.openSession('unknown-to-it', log);
  await session.prompt({ text: 'Which word?', mode: 'manual' }, new Heard());
  assert.match(asked(from)[0]!.messages[1]!.content!, /Person: The word is pear\.\n\nYou: I see\.[\s\S]*Which word\?$/);
});

test('what may pass is asked again, and what may not fails the turn with the gateway’s words', async () => {
  upstream.script('model', [
    errorOf('chat', 503, 'busy', { 'retry-after': '0' }),
    answerOf('chat', true, { text: 'At last.' }),
    errorOf('chat', 402, 'the budget is used up'),
    streamOf(['data: {"choices":[{"index":0,"delta":{"content":"Half"}}]}\n\n'], { end: 'cut' }),
  ]);
  const heard = new Heard();
  await prompt('Try', 'manual', heard);
  assert.equal(heard.text, 'At last.');
  const refused = await prompt('Try', 'manual', new Heard());
  assert.deepEqual([refused.end.outcome, refused.end.message], ['failed', 'the budget is used up']);
  const broken = await prompt('Try', 'manual', new Heard());
  assert.equal(broken.end.outcome, 'failed');
});

test('old results make room before the context is full, and a model with less room is asked again with less', async () => {
  const text = 'word '.repeat(6_000);
  writeFileSync(path.join(workspace, 'long.txt'), text);
  const reading = (n: number): Told => ({ calls: [call('read_file', { path: 'long.txt' }, `call_${n}`)] });
  const readings = Array.from({ length: 30 }, (_, n) => answerOf('chat', true, reading(n)));
  upstream.script('model', [
    ...readings,
    errorOf('chat', 400, 'the prompt is too long: the context of the model is 30000 tokens'),
    answerOf('chat', true, { text: 'Done.' }),
  ]);
  const from = asked().length;
  const heard = new Heard();
  await prompt('Read a lot', 'self-drive', heard);
  assert.equal(heard.text, 'Done.');
  const lengths = asked(from).map((body) => JSON.stringify(body.messages).length);
  assert.ok(Math.max(...lengths) < 600_000);
  assert.ok(lengths.at(-1)! < 150_000);
  assert.equal(asked(from).at(-1)!.messages[1]!.content, 'Read a lot');
});

test('its memory stays below 120 MB', () => {
  const status = readFileSync(`/proc/${agent.child.pid}/status`, 'utf8');
  const peakKb = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]);
  console.log(`peak ${Math.round(peakKb / 1024)} MiB`);
  assert.ok(peakKb < 120 * 1024, `${peakKb} kB`);
});
