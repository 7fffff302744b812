import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson, readDocument } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { type Abilities, arbitraryConversation, arbitraryRound, arbitraryTurn } from '../../testing/laws/arbitrary.ts';
import { samples } from '../../testing/laws/samples.ts';
import type { Turn, TurnEvent } from '../conversation/conversation.ts';
import type { EncodeTarget, Stamp } from '../conversation/format.ts';
import { Losses } from '../conversation/losses.ts';
import { collect, eventsOf } from '../conversation/replay.ts';
import { chat } from './index.ts';

/** What this format can express, for a service that supports all of it. */
const ABILITIES: Abilities = {
  format: 'chat',
  instructions: ['system', 'developer'],
  userParts: ['text', 'image', 'file', 'audio', 'video'],
  reasoning: ['plain', 'signed', 'encrypted', 'summary'],
  origins: ['anthropic-claude-v1', 'openai-responses-v1', 'google-gemini-v1'],
  sortedParts: true,
  refusals: true,
  resultImages: false,
  resultErrors: false,
  groupedResults: false,
  names: true,
  cacheMarks: true,
  settings: [
    'maxOutputTokens',
    'temperature',
    'topP',
    'topK',
    'topA',
    'minP',
    'frequencyPenalty',
    'presencePenalty',
    'repetitionPenalty',
    'seed',
    'stop',
    'logprobs',
    'topLogprobs',
    'logitBias',
    'parallelToolCalls',
    'serviceTier',
    'verbosity',
    'prediction',
    'promptCacheKey',
  ],
  outputs: ['text', 'json', 'schema', 'grammar', 'python'],
  reasoningSettings: ['effort', 'budget', 'enabled', 'exclude', 'summary'],
  severalChoices: true,
  strict: true,
};

const TARGET: EncodeTarget = {
  model: 'm',
  stream: false,
  maxOutputTokens: null,
  origin: 'unknown',
  user: 'hash',
  dialect: {
    chat: {
      developerRole: true,
      cacheControl: true,
      reasoning: 'object',
      reasoningDetails: true,
      grammar: 'response_format',
      python: true,
    },
  },
};

const STAMP: Stamp = { id: 'gen-1', model: 'some/model', provider: 'Some', created: 7, usage: 'chunk' };

test('decoding an encoded conversation returns it without loss', () => {
  fc.assert(
    fc.property(arbitraryConversation(ABILITIES), (conversation) => {
      const losses = new Losses();
      const body = parseJson(JSON.stringify(chat.encode(conversation, TARGET, losses)));
      assert.deepEqual(chat.decode(body), conversation);
      assert.deepEqual(losses.dropped, []);
    }),
    { numRuns: samples(400) },
  );
});

test('a further round leaves earlier messages byte for byte', () => {
  const outputs = { grammar: 'response_format', python: true } as const;
  const dialects = [
    TARGET.dialect,
    { chat: outputs },
    { chat: { ...outputs, reasoningReplay: 'reasoning_content' as const } },
  ];
  fc.assert(
    fc.property(arbitraryConversation(ABILITIES), arbitraryRound(ABILITIES, 9), (conversation, round) => {
      for (const dialect of dialects) {
        const encoded = (messages: typeof conversation.messages) => {
          const body = chat.encode({ ...conversation, messages }, { ...TARGET, dialect }, new Losses());
          return JSON.stringify((body as { messages: unknown }).messages);
        };
        const before = encoded(conversation.messages);
        const after = encoded([...conversation.messages, ...round]);
        assert.ok(after.startsWith(before.slice(0, -1)), `${before}\nis not a prefix of\n${after}`);
      }
    }),
    { numRuns: samples(200) },
  );
});

/** The parts that survive encoding: texts are joined, and the id is the gateway's. */
function asChatShows(turn: Turn): unknown {
  return turn.choices.map(({ parts, finish }) => {
    const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    const others = parts.filter((part) => part.type !== 'text');
    return { text, others, finish };
  });
}

test('a complete answer survives encoding and decoding', () => {
  fc.assert(
    fc.property(arbitraryTurn(ABILITIES), (turn) => {
      const reply = parseJson(JSON.stringify(chat.encodeReply(turn, STAMP, { usage: turn.usage! })));
      const read = chat.decodeReply(reply, {});
      assert.ok('turn' in read);
      assert.deepEqual(asChatShows(read.turn), asChatShows(turn));
      const { native: _native, ...counts } = read.turn.usage!;
      const { cacheWrite5m, ...others } = turn.usage!;
      assert.deepEqual(counts, { cacheWrite5m, ...others });
    }),
    { numRuns: samples(300) },
  );
});

/** The data of a stream's events, parsed independently of the code under test. */
function dataOf(text: string): string[] {
  return text.split('\n\n').flatMap((block) => (block.startsWith('data: ') ? [block.slice(6)] : []));
}

function readStream(text: string): TurnEvent[] {
  const decoder = chat.decoder({});
  const events: TurnEvent[] = [];
  for (const data of dataOf(text)) {
    events.push(...decoder.read('', data, data === '[DONE]' ? undefined : JSON.parse(data)));
  }
  return events;
}

test('a streamed answer survives encoding and decoding', () => {
  fc.assert(
    fc.property(arbitraryTurn(ABILITIES), (turn) => {
      const encoder = chat.encoder(STAMP);
      const text =
        eventsOf(turn)
          .map((event) => encoder.event(event))
          .join('') + encoder.end({ usage: turn.usage! });
      const events = readStream(text);
      assert.equal(events.at(-1)!.type, 'end');
      assert.deepEqual(asChatShows(collect(events)), asChatShows(turn));
    }),
    { numRuns: samples(300) },
  );
});

test('streamed reasoning sent back as the list of its deltas rebuilds the same parts (bug 41)', () => {
  fc.assert(
    fc.property(arbitraryTurn({ ...ABILITIES, severalChoices: false }), (turn) => {
      const encoder = chat.encoder(STAMP);
      const text =
        eventsOf(turn)
          .map((event) => encoder.event(event))
          .join('') + encoder.end({});
      const message: Record<string, unknown> = { role: 'assistant', content: '' };
      const details: unknown[] = [];
      for (const data of dataOf(text)) {
        if (data === '[DONE]') continue;
        const delta = JSON.parse(data).choices[0]?.delta ?? {};
        if (delta.content) message['content'] += delta.content;
        details.push(...(delta.reasoning_details ?? []));
      }
      if (details.length > 0) message['reasoning_details'] = details;
      const [decoded] = chat.decode({ messages: [message] }).messages;
      const wanted = turn.choices[0]!.parts.filter((part) => part.type === 'reasoning');
      assert.deepEqual(
        decoded!.parts.filter((part) => part.type === 'reasoning'),
        wanted,
      );
    }),
    { numRuns: samples(300) },
  );
});

const unknowns = fc.dictionary(
  fc.stringMatching(/^x_[a-z]{1,8}$/),
  fc.oneof(
    fc.constantFrom('7203685477580700123', '1.0', '1e400', '"北京"', '[1.50]'),
    // Bodies with such a key are rejected before they reach a format.
    fc
      .jsonValue()
      .map((value) => JSON.stringify(value))
      .filter((text) => !text.includes('__proto__')),
  ),
  { maxKeys: 4 },
);

test('unknown members of a relayed request, answer and chunk arrive with their literals', () => {
  fc.assert(
    fc.property(unknowns, (members) => {
      const extra = Object.entries(members).map(([key, json]) => `,${JSON.stringify(key)}: ${json}`);
      const requestText = `{"model":"a/b","user":"alice","messages":[{"role":"user","content":"hi"}]${extra.join('')}}`;
      const document = readDocument(Buffer.from(requestText));
      const sent = applyEdits(document, chat.relay.edits(document, { ...TARGET, dialect: {} })).toString();
      const replyText = `{"id":"u","choices":[{"index":0,"message":{"role":"assistant","content":"x"${extra.join('')}},"finish_reason":"stop"${extra.join('')}}]${extra.join('')}}`;
      const value = parseJson(replyText);
      const reply = chat.decodeReply(value, {});
      assert.ok('turn' in reply);
      const answered = chat.relay.reply({ text: replyText, value, turn: reply.turn, stamp: STAMP, closing: {} });
      const chunk = `{"id":"u","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"x"${extra.join('')}},"finish_reason":null}]${extra.join('')}}`;
      const relayed = chat.relay.stream(STAMP, {}).event('', chunk, parseJson(chunk), []);
      for (const [text, times] of [
        [sent, 1],
        [answered, 3],
        [relayed, 2],
      ] as const) {
        for (const member of extra) {
          assert.ok(text.split(member.slice(1)).length - 1 >= times, `${member} is not ${times} times in ${text}`);
        }
      }
    }),
    { numRuns: samples(200) },
  );
});
