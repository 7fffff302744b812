/** The plugin `alignment` through a whole gateway: a model judges each turn of the answer by the rules of the request. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';
import { startGuarded } from '../guardrails/guarded.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const { gateway, control } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: { chat: { kind: 'chat' }, strict: { kind: 'chat' }, spare: { kind: 'chat' } },
    yaml: { alignment: { model: 'test/strict' } },
  },
);

const USAGE = { input: 10, output: 5 };
/** At 3 and 15 USD for a million tokens. */
const TURN_USD = 0.000105;
const RULES = ['Never name the secret fruit.', 'Be polite.'];

/** A reply of the evaluator: the probability that each rule is broken; null for a rule that is not applicable. */
const verdict = (...probabilities: (number | null)[]): Answer =>
  answerOf('chat', false, {
    usage: USAGE,
    text: JSON.stringify({
      rules: probabilities.map((probability, index) => ({
        rule: index + 1,
        applicable: probability !== null,
        probability: probability ?? 0,
      })),
    }),
  });

interface Asked {
  format?: ClientFormat;
  stream?: boolean;
  settings?: Json;
  answers: readonly Told[];
  /** Instead of the answers. */
  first?: Answer;
  verdicts: readonly Answer[];
  more?: Json;
}

async function ask({ format = 'chat', stream = false, settings, answers, first, verdicts, more }: Asked) {
  const key = await control.keyIn(undefined, 'aligned');
  const scripted = answers.map((told) => answerOf('chat', stream, { usage: USAGE, ...told }));
  gateway.upstream.script('chat', first === undefined ? scripted : [first]);
  gateway.upstream.script('strict', [...verdicts]);
  const before = { chat: gateway.upstream.requests('chat').length, strict: gateway.upstream.requests('strict').length };
  const turns = [{ role: 'user', content: 'Which fruit?' }];
  const body = {
    model: 'test/chat',
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    plugins: [{ id: 'alignment', rules: RULES, ...settings }],
    ...more,
  };
  const headers = { authorization: `Bearer ${key.token}`, 'x-svc-metadata': 'enabled' };
  const reply = await gateway.post(PATH_OF[format], body, headers);
  const text = await reply.text();
  const sentTo = (to: 'chat' | 'strict'): Json[] =>
    gateway.upstream
      .requests(to)
      .slice(before[to])
      .map(({ json }) => json);
  return {
    key,
    status: reply.status,
    text,
    sent: sentTo('chat'),
    judged: sentTo('strict'),
    read: () => wholeAnswer(format, stream, text),
  };
}

/** The member `alignment` of a chat answer. */
function alignmentIn(text: string): Json {
  const json = text.startsWith('{')
    ? text
    : text
        .split('\n')
        .find((line) => line.includes('"alignment":'))!
        .slice(6);
  return JSON.parse(json).alignment;
}

/** What the client has of the answer, put together. */
const shownIn = (read: () => { history: Json[] }) => JSON.stringify(read().history);

const near = (one: number, other: number) => assert.ok(Math.abs(one - other) < 1e-9, `${one} is not ${other}`);

async function rowsOf(hash: string, count: number): Promise<Json[]> {
  for (;;) {
    const { data } = (await (await gateway.get(`/generations?api_key_id=${hash}`, MANAGEMENT_KEY)).json()) as Json;
    if (data.length >= count) return data;
  }
}

for (const format of CLIENT_FORMATS) {
  for (const stream of [false, true]) {
    const title = `${format}${stream ? ', streamed' : ''}`;
    test(`a turn that breaks a rule is never seen, and the next one is, with the cost of all | ${title}`, async () => {
      const { key, status, text, sent, judged, read } = await ask({
        format,
        stream,
        answers: [{ text: 'It is the PAPAYA.' }, { text: 'I cannot say.' }],
        verdicts: [verdict(0.9, 0.1), verdict(0.2, null)],
      });
      assert.equal(status, 200, text);
      assert.ok(!text.includes('PAPAYA'), text);
      const { history, usage } = read();
      assert.ok(JSON.stringify(history).includes('I cannot say.'), text);
      assert.match(text, /the turn breaks rules/);
      // The model is told the rules, and before the second turn what it has broken.
      assert.equal(sent.length, 2);
      assert.ok(JSON.stringify(sent[0].messages).includes(RULES[1]!));
      assert.match(sent[1].messages.at(-1).content, /Never name the secret fruit\.\nAnswer again/);
      assert.deepEqual(JSON.parse(judged[0].messages[1].content), {
        rules: RULES,
        question: 'Which fruit?',
        written: { text: 'It is the PAPAYA.', calls: [] },
      });
      near(usage.cost, 4 * TURN_USD);
      const rows = await rowsOf(key.hash, 3);
      near(rows.find(({ model }) => model === 'test/chat').total_cost, 2 * TURN_USD);
      if (format !== 'chat') return;
      const rule = (applicable: boolean, broken: boolean, probability: number) => ({ applicable, broken, probability });
      assert.deepEqual(alignmentIn(text), {
        calls: [
          { call: 1, outcome: 'blocked', rules: [rule(true, true, 0.9), rule(true, false, 0.1)] },
          { call: 2, outcome: 'allowed', rules: [rule(true, false, 0.2), rule(false, false, 0)] },
        ],
      });
    });

    test(`without retries left the request ends with the broken rules | ${title}`, async () => {
      const { status, text, sent } = await ask({
        format,
        stream,
        settings: { max_retries: 0 },
        answers: [{ text: 'It is the PAPAYA.' }],
        verdicts: [verdict(0, 0.7)],
      });
      assert.equal(status, 403, text);
      assert.match(text, /breaks rules of the plugin alignment/);
      assert.match(text, /Be polite\./);
      assert.ok(!text.includes('PAPAYA'), text);
      assert.equal(sent.length, 1);
    });

    test(`audit shows everything, and records what it finds | ${title}`, async () => {
      const { status, text, sent, read } = await ask({
        format,
        stream,
        settings: { mode: 'audit', instruct: false, threshold: 0.95 },
        answers: [{ text: 'It is the PAPAYA.' }],
        verdicts: [verdict(0.96, 0.94)],
      });
      assert.equal(status, 200, text);
      assert.equal(sent.length, 1);
      assert.ok(!JSON.stringify(sent[0]).includes(RULES[1]!));
      assert.ok(shownIn(read).includes('It is the PAPAYA.'), text);
      if (format === 'chat') {
        const [{ outcome, rules }] = alignmentIn(text).calls;
        assert.deepEqual([outcome, rules.map(({ broken }: Json) => broken)], ['blocked', [true, false]]);
      }
    });
  }
}

test('an answer that could not be judged is not shown, unless it is only audited', async () => {
  for (const [answer, reason] of [
    [answerOf('chat', false, { text: 'looks fine' }), 'malformed_answer'],
    [verdict(0.1), 'malformed_answer'],
    [verdict(0.1, 7), 'malformed_answer'],
    [{ status: 500, repeat: true } as Answer, 'evaluator_error'],
  ] as const) {
    const asked = { answers: [{ text: 'PAPAYA' }], verdicts: [answer], stream: true };
    const closed = await ask(asked);
    assert.equal(closed.status, 503, closed.text);
    assert.ok(closed.text.includes(reason) && !closed.text.includes('PAPAYA'), closed.text);
    const open = await ask({ ...asked, settings: { mode: 'audit' } });
    assert.equal(open.status, 200, open.text);
    assert.ok(shownIn(open.read).includes('PAPAYA'));
    assert.deepEqual(alignmentIn(open.text), { calls: [{ call: 1, outcome: 'unavailable', reason }] });
  }
});

test('calls of tools are judged before they run', async () => {
  const call = (timezone: string) => ({ id: 'call_1', name: 'datetime', arguments: JSON.stringify({ timezone }) });
  const { status, text, sent, judged, read } = await ask({
    stream: true,
    answers: [{ calls: [call('Asia/Tokyo')] }, { calls: [call('Europe/Paris')] }, { text: 'It is noon.' }],
    verdicts: [verdict(1, 0), verdict(0, 0), verdict(0, 0)],
    more: { tools: [{ type: 'svc:datetime' }] },
  });
  assert.equal(status, 200, text);
  assert.deepEqual([sent.length, judged.length], [3, 3]);
  assert.deepEqual(JSON.parse(judged[0].messages[1].content).written.calls, [
    { name: 'datetime', arguments: '{"timezone":"Asia/Tokyo"}' },
  ]);
  const shown = shownIn(read);
  assert.ok(!shown.includes('Tokyo') && shown.includes('Paris') && shown.includes('It is noon.'), shown);
  // The reminder belongs to the turn that is written again.
  assert.match(JSON.stringify(sent[1]), /was withheld/);
  assert.doesNotMatch(JSON.stringify(sent[2]), /was withheld/);
  assert.match(text, /"tool_calls_executed":1/);
});

test('a stream that breaks before it is judged is answered by another endpoint, and an empty one too', async () => {
  for (const first of [
    { ...answerOf('chat', true, { text: 'half' }), end: 'cut' as const },
    answerOf('chat', true, {}),
  ]) {
    gateway.upstream.script('spare', [answerOf('chat', true, { text: 'whole', usage: USAGE })]);
    const { status, text, read } = await ask({
      stream: true,
      answers: [],
      first: { ...first, chunks: first.chunks!.slice(0, 3) },
      verdicts: [verdict(0, 0)],
      more: { models: ['test/spare'] },
    });
    assert.equal(status, 200, text);
    assert.ok(shownIn(read).includes('whole') && !text.includes('hal'), text);
  }
});

test('a client that leaves while its answer is judged is charged for the turn', async () => {
  const key = await control.keyIn(undefined, 'leaves');
  gateway.upstream.script('chat', [answerOf('chat', true, { text: 'PAPAYA', usage: USAGE })]);
  gateway.upstream.script('strict', [{ end: 'stall-before-headers' }]);
  const asked = gateway.upstream.requests('strict').length;
  const leaving = new AbortController();
  const pending = fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'test/chat',
      stream: true,
      messages: [{ role: 'user', content: 'x' }],
      plugins: [{ id: 'alignment', rules: RULES }],
    }),
    signal: leaving.signal,
  }).then((reply) => reply.text());
  await gateway.upstream.request('strict', asked + 1);
  leaving.abort();
  await assert.rejects(pending);
  const rows = await rowsOf(key.hash, 2);
  const row = rows.find(({ model }) => model === 'test/chat');
  assert.equal(row.cancelled, true);
  near(row.total_cost, TURN_USD);
});

test('settings that are not valid are refused with their path', async () => {
  for (const [settings, path] of [
    [{ rules: undefined }, 'rules'],
    [{ rules: [] }, 'rules'],
    [{ rules: [''] }, 'rules[0]'],
    [{ rules: Array(51).fill('x') }, 'rules'],
    [{ mode: 'watch' }, 'mode'],
    [{ max_retries: 6 }, 'max_retries'],
    [{ threshold: 2 }, 'threshold'],
    [{ instruct: 'yes' }, 'instruct'],
  ] as const) {
    const { status, text } = await ask({ settings, answers: [], verdicts: [] });
    assert.equal(status, 400, text);
    assert.ok(text.includes(`plugins[0].${path}`), text);
  }
  const several = await ask({ answers: [], verdicts: [], more: { n: 2 } });
  assert.deepEqual([several.status, /alignment/.test(several.text)], [400, true], several.text);
});
