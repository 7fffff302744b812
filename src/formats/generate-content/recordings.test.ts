/** Recorded replies of Google's services, shown to a client of the served format and sent back by it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { corpusMissing, recordings } from '../../testing/recordings/corpus.ts';
import type { Turn } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, listOf } from '../conversation/fields.ts';
import { Losses } from '../conversation/losses.ts';
import { gemini } from '../gemini/index.ts';
import { chat } from '../index.ts';
import { ContentStream, chatRequestOf, contentReplyOf } from './index.ts';

const STAMP = { id: 'gen-1', model: 'test/g', provider: 'G', created: 1, usage: 'finish' as const };
const SHAPE = { thoughts: true };
const TARGET = {
  ...{ model: 'gemini-3-pro', stream: false, maxOutputTokens: null, user: 'u', dialect: {} },
  origin: 'google-gemini-v1' as const,
};

const answered = recordings(['generate'], /google|vertex/).flatMap((recording) => {
  if (recording.status !== 200) return [];
  const replies = recording.stream
    ? recording.events.map(({ data }) => JSON.parse(data) as unknown)
    : ([JSON.parse(recording.text)].flat() as unknown[]);
  const decoder = gemini.decoder({}, 'seed');
  const events = replies.flatMap((reply) => decoder.read('', JSON.stringify(reply), reply));
  const read = gemini.decodeReply(replies, {}, 'seed');
  return 'turn' in read ? [{ ...recording, replies, events: [...events, ...decoder.close()], turn: read.turn }] : [];
});

/** The parts of the first candidate as the service sent them, joined: texts, thoughts, calls. */
function saidIn(replies: readonly unknown[]) {
  const said = {
    text: '',
    thoughts: '',
    calls: [] as unknown[],
    signatures: [] as unknown[],
    finish: undefined as unknown,
  };
  for (const reply of replies) {
    const candidate = fieldsOf(listOf(fieldsOf(reply)['candidates'])[0]);
    if (candidate['finishReason'] !== undefined) said.finish = candidate['finishReason'];
    for (const value of listOf(fieldsOf(candidate['content'])['parts'])) {
      const part = fieldsOf(value);
      const call = fieldsOf(part['functionCall']);
      if (typeof part['text'] === 'string') said[part['thought'] === true ? 'thoughts' : 'text'] += part['text'];
      if (typeof call['name'] === 'string') said.calls.push([call['name'], call['args'] ?? {}]);
      if (part['thoughtSignature'] !== undefined) said.signatures.push(part['thoughtSignature']);
    }
  }
  // Blocks that the conversation does not know travel sealed.
  const own = said.signatures.filter((each) => !String(each).startsWith('eyJzdmNf'));
  return { ...said, signatures: own.toSorted() };
}

/** A blocked prompt has no candidate, which clients of any model get. */
const expectedOf = (replies: readonly unknown[]) => {
  const said = saidIn(replies);
  const blocked = replies.some((reply) => fieldsOf(reply)['promptFeedback'] !== undefined);
  if (String(said.finish).startsWith('FAKE_')) return { ...said, finish: 'STOP' };
  return { ...said, finish: said.finish ?? (blocked ? 'SAFETY' : 'STOP') };
};

function wholeReply(turn: Turn): Fields {
  return contentReplyOf(fieldsOf(chat.encodeReply(turn, STAMP, { usage: turn.usage! })), SHAPE);
}

/** Streamed pieces of calls have their arguments elsewhere, and blocks of tools at Google have no counterpart. */
const isPlain = ({ replies }: { replies: readonly unknown[] }) =>
  !/partialArgs|willContinue|executableCode|codeExecutionResult|"toolCall"|toolResponse/.test(JSON.stringify(replies));

test('a client gets the text, thoughts, calls and signatures that the service sent', { skip: corpusMissing }, () => {
  const plain = answered.filter(isPlain);
  assert.ok(plain.length >= 20, `${plain.length} recordings`);
  for (const { id, replies, turn } of plain) {
    const reply = wholeReply(turn);
    assert.deepEqual(saidIn([reply]), expectedOf(replies), id);
  }
});

test('a streaming client gets the same', { skip: corpusMissing }, () => {
  for (const { id, replies, events } of answered.filter(isPlain)) {
    const encoder = chat.encoder(STAMP);
    const text = events.map((event) => (event.type === 'end' ? '' : encoder.event(event))).join('') + encoder.end({});
    const shown: unknown[] = [];
    const stream = new ContentStream(SHAPE, {
      comment: (text) => text,
      event(json) {
        shown.push(JSON.parse(json));
        return json;
      },
    });
    stream.rewrite(text);
    assert.deepEqual(saidIn(shown), expectedOf(replies), id);
  }
});

test('what a client sends back reaches the service as the service said it', { skip: corpusMissing }, () => {
  for (const { id, replies, turn } of answered.filter(isPlain)) {
    const [candidate] = listOf(wholeReply(turn)['candidates']).map(fieldsOf) as [Fields];
    if (listOf(fieldsOf(candidate['content'])['parts']).length === 0) continue;
    const contents = [{ role: 'user', parts: [{ text: 'hi' }] }, candidate['content'], { parts: [{ text: 'go on' }] }];
    const { body } = chatRequestOf({ contents }, 'test/g', false);
    const encoded = fieldsOf(gemini.encode(chat.decode(body), TARGET, new Losses()));
    const sent = listOf(encoded['contents'])
      .map(fieldsOf)
      .find(({ role }) => role === 'model');
    const { finish: _, ...said } = saidIn([{ candidates: [{ content: sent }] }]);
    const { finish: __, ...told } = saidIn(replies);
    // Thoughts without any signature are nothing that the service wants back.
    const expected = told.signatures.length === 0 ? { ...told, thoughts: '' } : told;
    const placeholder = (list: unknown[]) => list.filter((each) => each !== 'skip_thought_signature_validator');
    assert.deepEqual({ ...said, signatures: placeholder(said.signatures) }, expected, id);
  }
});

function textsOf(contents: unknown): unknown[] {
  const parts = listOf(contents).flatMap((content) => listOf(fieldsOf(content)['parts']).map(fieldsOf));
  return parts.flatMap(({ text, thought }) => (text && thought !== true ? [text] : [])).toSorted();
}

test('recorded requests are understood, and reach the service with the same contents', { skip: corpusMissing }, () => {
  let asked = 0;
  for (const { id, request } of recordings(['generate'], /google/)) {
    if (request === undefined || listOf(request['contents']).length === 0) continue;
    let body: Fields;
    try {
      ({ body } = chatRequestOf(request, 'test/g', false));
    } catch (error) {
      // Refused by name: tools that run at Google, and files stored there.
      assert.match((error as Error).message, /is not supported|fileUri must be|cannot be sent back|at most 4/, id);
      continue;
    }
    asked += 1;
    const encoded = fieldsOf(gemini.encode(chat.decode(body), TARGET, new Losses()));
    assert.deepEqual(textsOf(encoded['contents']), textsOf(request['contents']), id);
  }
  assert.ok(asked >= 7, `${asked} requests`);
});
