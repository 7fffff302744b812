/** The chat with an intern: its stream, questions and answers, and every reason of a refusal. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { PermissionOption } from '../../src/interns/agents/connection.ts';
import { settle, until } from '../../src/testing/clock/clock.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { ScriptedAgent, type ScriptedTurn } from '../../src/testing/interns/scripted-agent.ts';
import { ScriptedSandboxes } from '../../src/testing/interns/scripted-sandboxes.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { answerBody, type ChatStream, chatWith } from './chat.ts';
import { internsOf, rowsOf } from './interns.ts';

const agent = new ScriptedAgent();
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { sandboxDrivers: new ScriptedSandboxes().choices, agent: agent.profile },
);
const { made, reaches, refused, call } = internsOf(gateway);
const { id } = await made({ name: 'talks', provision: true });
await reaches(id, 'running');
const chat = chatWith(gateway, id);

/** Runs with an agent and sandboxes that do as they should. */
function scene(name: string, run: () => Promise<void>): void {
  test(name, async () => {
    agent.canSteer = true;
    agent.confirmsCancel = true;
    agent.refusal = undefined;
    agent.opening = Promise.resolve();
    // The limit of requests counts by the minute.
    gateway.clock.jump(61_000);
    await run();
  });
}

const OPTIONS: PermissionOption[] = ['allow_once', 'allow_always', 'reject_once'];
const permission = { kind: 'permission', operation: 'shell', options: OPTIONS } as const;
const MANUAL = { approval_mode: 'manual' };

/** A run that has asked, and what the caller knows of it. */
async function paused(question: Parameters<ScriptedTurn['ask']>[0] = permission, more: Json = {}) {
  const stream = await chat.prompt('go', { ...MANUAL, ...more });
  const turn = await agent.nextTurn();
  const answered = turn.ask(question);
  const { finish, call: asked, session, usage } = await stream.ending();
  assert.deepEqual([finish, usage], ['tool_calls', null]);
  return { turn, answered, asked, session };
}

const user = (content: Json, more: Json = {}) => ({ messages: [{ role: 'user', content }], ...more });

scene(
  'a turn streams reasoning and content with the model that the intern reports, and ends with its usage',
  async () => {
    const stream = await chat.prompt('What is here?', { temperature: 1, tools: [], model: 'any/thing' });
    const turn = await agent.nextTurn();
    assert.deepEqual(turn.prompt, { text: 'What is here?', mode: 'self-drive' });
    turn.model('acme/fast');
    turn.think('Look.');
    turn.say('Two ');
    turn.say('files.');
    turn.complete({ promptTokens: 10, completionTokens: 5, cachedTokens: 4 });
    const { finish, usage, session, models } = await stream.ending();
    assert.deepEqual([stream.text('reasoning'), stream.text(), finish], ['Look.', 'Two files.', 'stop']);
    assert.deepEqual(usage, {
      ...{ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, prompt_tokens_details: { cached_tokens: 4 } },
    });
    assert.deepEqual([models[0], new Set(models.slice(1))], ['svc/intern', new Set(['acme/fast'])]);

    const next = await chat.prompt('And now?', { session_id: session });
    const second = await agent.nextTurn();
    assert.equal(second.session, turn.session);
    second.complete();
    const end = await next.ending();
    assert.deepEqual([end.session, end.usage], [session, null]);
  },
);

scene('a permission is one tool call, and the answer continues the run where it paused', async () => {
  for (const option of OPTIONS) {
    const { turn, answered, asked, session } = await paused();
    assert.deepEqual([asked.type, asked.index, asked.function.name], ['function', 0, 'svc.provide_input']);
    assert.deepEqual(JSON.parse(asked.function.arguments), permission);
    turn.say('meanwhile ');
    const stream = await chat.answer(asked, session, option);
    assert.deepEqual(await answered, { action: 'option', option });
    turn.say('done');
    turn.complete();
    assert.equal((await stream.ending()).finish, 'stop');
    assert.equal(stream.text(), 'meanwhile done');
  }
});

scene('a question is a tool call with its fields, and its answer is checked against them', async () => {
  const fields = [
    { name: 'branch', type: 'string', required: true, options: ['main', 'next'] },
    { name: 'count', type: 'integer', required: false },
    { name: 'labels', type: 'array', required: false, options: ['a', 'b'] },
  ];
  const question = { kind: 'elicitation', message: 'Which one?', fields } as const;
  const { turn, answered, asked, session } = await paused(question);
  assert.deepEqual(JSON.parse(asked.function.arguments), question);
  const wrong: Json[] = [
    ...['', 'main', '[]', {}, { action: 'yes' }, { action: 'accept' }, { action: 'accept', content: [] }],
    { action: 'accept', content: {} },
    { action: 'accept', content: { branch: 'other' } },
    { action: 'accept', content: { branch: 'main', count: 1.5 } },
    { action: 'accept', content: { branch: 'main', labels: 'a' } },
    { action: 'accept', content: { branch: 'main', labels: ['c'] } },
    { action: 'accept', content: { branch: 'main', more: 1 } },
  ];
  for (const answer of wrong) {
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
    await refused(chat.plain(answerBody(asked, session, text)), 400, 'bad_request', /^The content of the last/);
  }
  const content = { branch: 'main', count: 2, labels: ['a', 'b'] };
  const stream = await chat.answer(asked, session, JSON.stringify({ action: 'accept', content }));
  assert.deepEqual(await answered, { action: 'accept', content });
  const declined = turn.ask(question);
  const second = await stream.ending();
  const last = await chat.answer(second.call, session, '{"action":"decline"}');
  assert.deepEqual(await declined, { action: 'decline' });
  turn.complete();
  await last.ending();
});

scene('under self-drive permissions are given, and only other questions reach the caller', async () => {
  const stream = await chat.prompt('go');
  const turn = await agent.nextTurn();
  assert.deepEqual(await turn.ask(permission), { action: 'option', option: 'allow_once' });
  const always = { ...permission, options: ['reject_once', 'allow_always'] as PermissionOption[] };
  assert.deepEqual(await turn.ask(always), { action: 'option', option: 'allow_always' });
  const asked = turn.ask({ kind: 'elicitation', message: 'Name?', fields: [] });
  const { call: question, session } = await stream.ending();
  const next = await chat.answer(question, session, '{"action":"cancel"}');
  assert.deepEqual(await asked, { action: 'cancel' });
  turn.complete();
  await next.ending();
});

scene('questions that are asked at once are answered one after the other', async () => {
  const stream = await chat.prompt('go', MANUAL);
  const turn = await agent.nextTurn();
  const answers = Promise.all(OPTIONS.map(() => turn.ask(permission)));
  let { call: asked, session } = await stream.ending();
  for (const [at, option] of OPTIONS.entries()) {
    const next: ChatStream = await chat.answer(asked, session, option);
    if (at < OPTIONS.length - 1) asked = (await next.ending()).call;
    else {
      turn.complete();
      assert.equal((await next.ending()).finish, 'stop');
    }
  }
  assert.deepEqual(
    (await answers).map((answer) => answer.action === 'option' && answer.option),
    OPTIONS,
  );
});

scene(
  'a question that is not answered within five minutes cancels the run; wrong answers do not extend it',
  async () => {
    const { turn, answered, asked, session } = await paused();
    gateway.clock.jump(299_000);
    await refused(chat.plain(answerBody(asked, session, 'perhaps')), 400, 'bad_request', /must be one of: allow_once/);
    await settle();
    assert.equal(turn.isCancelled, false);
    gateway.clock.jump(2_000);
    assert.deepEqual(await answered, { action: 'cancel' });
    assert.equal(turn.isCancelled, true);
    await refused(chat.plain(answerBody(asked, session, 'allow_once')), 409, 'interaction_not_pending');
  },
);

scene('the answer cancel ends the run, and the caller gets the end', async () => {
  const { turn, answered, asked, session } = await paused();
  const stream = await chat.answer(asked, session, 'cancel');
  assert.deepEqual(await answered, { action: 'cancel' });
  assert.equal(turn.isCancelled, true);
  assert.deepEqual(await stream.reason(), [410, 'run_ended']);
});

scene('a client that leaves in mid-stream cancels the run, one that leaves after tool_calls does not', async () => {
  const stream = await chat.prompt('go');
  const turn = await agent.nextTurn();
  turn.say('some');
  await until(() => stream.text() === 'some', 'the client reads');
  stream.leave();
  await until(() => turn.isCancelled, 'the turn is cancelled');
  const { turn: other, asked, session } = await paused();
  await settle();
  assert.equal(other.isCancelled, false);
  const next = await chat.answer(asked, session, 'allow_once');
  other.complete();
  assert.equal((await next.ending()).finish, 'stop');
});

scene('a message for a session whose turn runs is added to that turn', async () => {
  const stream = await chat.prompt('go', { session_id: 'my own' });
  const turn = await agent.nextTurn();
  const answer = await chat.plain(user('faster', { session_id: 'my own' }));
  assert.deepEqual(answer, { status: 202, body: { session_id: 'my own', status: 'steered' } });
  assert.deepEqual(turn.steered, ['faster']);
  agent.canSteer = false;
  await refused(chat.plain(user('faster', { session_id: 'my own' })), 409, 'busy', /already runs a turn/);
  turn.complete();
  assert.equal((await stream.ending()).session, 'my own');
  const { asked, session, turn: second } = await paused();
  await refused(chat.plain(user('go on', { session_id: session })), 409, 'busy', /waits for an answer/);
  second.complete();
  await until(async () => (await chat.plain(answerBody(asked, session, 'allow_once'))).status === 409, 'it is over');
});

scene('silence is filled with comments, and a response ends after five minutes', async () => {
  const stream = await chat.prompt('go');
  const turn = await agent.nextTurn();
  gateway.clock.jump(30_000);
  await until(() => stream.comments === 1, 'a comment arrives');
  gateway.clock.jump(271_000);
  assert.deepEqual(await stream.reason(), [504, 'timeout']);
  assert.equal(turn.isCancelled, true);
});

scene('a stream that has not begun within five minutes is refused', async () => {
  const opening = Promise.withResolvers<void>();
  agent.opening = opening.promise;
  const body = user('go', { session_id: 'slow' });
  const before = agent.opens;
  const pending = chat.plain(body);
  await until(() => agent.opens > before, 'the session is being opened');
  await refused(chat.plain(body), 409, 'busy', /already begins/);
  gateway.clock.jump(301_000);
  await refused(pending, 408, 'timeout');
  opening.resolve();
  let response: Response;
  do {
    ({ response } = await chat.send(body));
    if (response.status === 409) await response.text();
  } while (response.status === 409);
  (await agent.nextTurn()).complete();
  assert.match(await response.text(), /"finish_reason":"stop"/);
});

scene('an agent that fails, cancels or breaks ends the stream with the reason', async () => {
  const endings: [(turn: ScriptedTurn) => void, [number, string]][] = [
    [(turn) => turn.fail('no model'), [502, 'turn_failed']],
    [
      (turn) => {
        turn.say('began');
        turn.fail('no model');
      },
      [410, 'run_ended'],
    ],
    [(turn) => turn.confirmCancel(), [410, 'run_ended']],
    [(turn) => turn.sever(), [502, 'stream_severed']],
  ];
  for (const [end, reason] of endings) {
    const stream = await chat.prompt('go');
    end(await agent.nextTurn());
    assert.deepEqual(await stream.reason(), reason);
    assert.equal((await stream.ending()).models.at(-2), 'svc/intern');
  }
});

scene('an agent that does not confirm a cancellation is ended', async () => {
  agent.confirmsCancel = false;
  const { asked, session } = await paused();
  const stream = await chat.answer(asked, session, 'cancel');
  await settle();
  const before = agent.connections.at(-1)!;
  gateway.clock.jump(10_500);
  assert.deepEqual(await stream.reason(), [502, 'stream_severed']);
  await until(() => before.isClosed, 'its connection is closed');
});

scene('an agent that refuses a session, or is not reached, is an error before the stream', async () => {
  agent.refusal = 'no such mode';
  await refused(chat.plain(user('go')), 502, 'intern_rejected', /no such mode/);
  agent.refusal = undefined;
  const opening = Promise.withResolvers<void>();
  agent.opening = opening.promise;
  const before = agent.opens;
  const pending = chat.plain(user('go'));
  await until(() => agent.opens > before, 'the session is being opened');
  agent.connections.at(-1)!.close();
  opening.resolve();
  await refused(pending, 502, 'intern_unreachable');
});

scene('more output than is kept for a reader ends the run with an error', async () => {
  const { turn, asked, session } = await paused();
  for (let at = 0; at < 300; at++) turn.say('x'.repeat(1_024));
  await until(() => turn.isCancelled, 'the run is cancelled');
  await refused(chat.plain(answerBody(asked, session, 'allow_once')), 410, 'attachment_failed', /256 KiB/);
});

scene('answers name the question of their session, once', async () => {
  const { turn, asked, session } = await paused();
  await refused(chat.plain(answerBody({ ...asked, id: 'call_x' }, session, 'allow_once')), 404, 'interaction_unknown');
  await refused(chat.plain(answerBody(asked, 'another', 'allow_once')), 404, 'interaction_unknown');
  const stream = await chat.answer(asked, session, 'allow_once');
  await refused(chat.plain(answerBody(asked, session, 'allow_once')), 409, 'interaction_not_pending');
  turn.complete();
  await stream.ending();
});

scene('malformed requests are refused before anything runs', async () => {
  const before = agent.turns.length;
  const bad: [Json, RegExp][] = [
    [{ ...user('hi'), stream: false }, /^stream must be true/],
    [{ ...user('hi'), stream: null }, /^stream must be true/],
    [{ messages: [] }, /^messages /],
    [user(''), /^messages\[0\]\.content /],
    [user('x'.repeat(32_001)), /^messages\[0\]\.content /],
    [user('🌤'.repeat(32_001)), /^messages\[0\]\.content must have at most 32000 characters/],
    [user([{ type: 'image_url' }]), /^messages\[0\]\.content\[0\] /],
    [user(1), /^messages\[0\]\.content /],
    [{ messages: [{ role: 'assistant', content: 'hi' }] }, /^messages\[0\]\.role /],
    [{ messages: [{ role: 'tool', tool_call_id: 'x', content: 'y' }] }, /^session_id /],
    [{ messages: [{ role: 'tool', content: 'y' }], session_id: 's' }, /^messages\[0\]\.tool_call_id /],
    [{ ...user('hi'), approval_mode: 'auto' }, /^approval_mode /],
    [{ ...user('hi'), session_id: '' }, /^session_id /],
    [{ ...user('hi'), session_id: 's'.repeat(257) }, /^session_id /],
    [{ ...user('hi'), model: '' }, /^model /],
  ];
  for (const [body, message] of bad) await refused(chat.plain(body), 400, 'bad_request', message);
  await refused(chatWith(gateway, crypto.randomUUID()).plain(user('hi')), 404, 'not_found');
  const { id: stopped } = await made({ name: 'stopped' });
  await refused(chatWith(gateway, stopped).plain(user('hi')), 409, 'intern_not_ready', /is stopped/);
  await refused(chat.plain(user('x'.repeat(1_048_577))), 413, 'payload_too_large');
  assert.equal(agent.turns.length, before);
});

scene('texts may come in parts, and earlier messages are not read', async () => {
  const parts = [
    { type: 'text', text: 'one ' },
    { type: 'text', text: 'two' },
  ];
  const longest = await chat.prompt('🌤'.repeat(32_000));
  (await agent.nextTurn()).complete();
  await longest.ending();
  const messages = [{ role: 'system', content: 1 }, { role: 'developer' }, { role: 'user', content: parts }];
  const stream = await chat.stream({ messages });
  const turn = await agent.nextTurn();
  assert.equal(turn.prompt.text, 'one two');
  turn.complete();
  await stream.ending();
});

scene('an intern holds a limited number of runs, and takes a limited number of requests a minute', async () => {
  const streams: ChatStream[] = [];
  const turns: ScriptedTurn[] = [];
  for (let at = 0; at < 16; at++) {
    streams.push(await chat.prompt('go'));
    turns.push(await agent.nextTurn());
  }
  await refused(chat.plain(user('go')), 503, 'busy');
  for (const turn of turns) turn.complete();
  for (const stream of streams) await stream.ending();
  gateway.clock.jump(61_000);
  const wrong = answerBody({ id: 'x', function: {} }, 's', 'y');
  for (let at = 0; at < 240; at++) assert.equal((await chat.plain(wrong)).status, 404);
  await refused(chat.plain(wrong), 429, 'rate_limited');
});

scene('a suspended intern ends its runs, and a session continues after it is provisioned again', async () => {
  const stream = await chat.prompt('remember me', { session_id: 'lasting' });
  const turn = await agent.nextTurn();
  turn.say('I do');
  turn.complete();
  await stream.ending();
  const open = await chat.prompt('go');
  await agent.nextTurn();
  assert.equal((await call('POST', `/${id}/suspend`)).status, 200);
  assert.deepEqual(await open.reason(), [410, 'run_ended']);
  await call('POST', `/${id}/provision`);
  await reaches(id, 'running');
  const again = await chat.prompt('still?', { session_id: 'lasting' });
  const second = await agent.nextTurn();
  assert.equal(second.session.known, turn.session.id);
  assert.deepEqual(second.session.log, [
    { role: 'user', text: 'remember me' },
    { role: 'assistant', text: 'I do' },
  ]);
  second.complete();
  await again.ending();
});

scene('no other caller continues a session, adds to its turn or answers its questions', async () => {
  const { token } = await controlOf(gateway).keyIn(undefined, 'a stranger', { creator_user_id: null });
  const stranger = chatWith(gateway, id, token);
  const { turn, asked, session, answered } = await paused();
  await refused(stranger.plain(answerBody(asked, session, 'allow_once')), 404, 'not_found');
  await refused(stranger.plain(user('more', { session_id: session })), 404, 'not_found');
  const rest = await chat.answer(asked, session, 'allow_once');
  assert.deepEqual(await answered, { action: 'option', option: 'allow_once' });
  turn.complete();
  await rest.ending();
  await refused(stranger.plain(user('again', { session_id: session })), 404, 'not_found');
});

scene('an invoked run needs no reader, and its session belongs to its caller', async () => {
  const invoke = (body: Json, token?: string) => internsOf(gateway, token).call('POST', `/${id}/invoke`, body);
  const started = await invoke({ input: 'work' });
  const turn = await agent.nextTurn();
  assert.deepEqual([started.status, started.body.status], [202, 'started']);
  assert.deepEqual(turn.prompt, { text: 'work', mode: 'self-drive' });
  assert.deepEqual(await turn.ask(permission), { action: 'option', option: 'allow_once' });
  assert.deepEqual(await turn.ask({ kind: 'elicitation', message: 'Name?', fields: [] }), { action: 'decline' });
  const { session_id } = started.body;
  assert.deepEqual(await invoke({ input: 'more', session_id }), {
    status: 202,
    body: { session_id, status: 'steered' },
  });
  const { token } = await controlOf(gateway).keyIn(undefined, 'another', { creator_user_id: null });
  await refused(invoke({ input: 'more', session_id }, token), 404, 'not_found');
  await refused(invoke({ input: 'more', session_id: 'unseen' }), 404, 'not_found');
  await refused(invoke({ input: ' ' }), 400, 'bad_request', /^input /);
  await refused(invoke({ input: 'x'.repeat(32_001) }), 400, 'bad_request', /^input /);
  for (let at = 0; at < 300; at++) turn.say('x'.repeat(1_024));
  gateway.clock.jump(3_600_000);
  assert.equal(turn.isCancelled, true);
  const entries = await rowsOf(gateway, 'select content from intern_session_entries where session_id = $1', [
    session_id,
  ]);
  assert.ok(entries.every(({ content }) => content.length <= 32_000));
});
