/**
 * A relayed answer that only its client reads is passed on as byte text. Nothing of that may show: the client and the row get
 * what they would get of the same bytes read as text.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type PipelineRequest, type Played, playThrough } from '../../testing/laws/pipeline.ts';
import { samples } from '../../testing/laws/samples.ts';
import { cutBytes } from '../../testing/recordings/cuts.ts';
import { answerOf, type Told } from '../../testing/upstream/answers.ts';
import { geminiAnswer } from '../../testing/upstream/gemini-answers.ts';
import { responsesAnswer } from '../../testing/upstream/responses-answers.ts';
import type { Answer } from '../../testing/upstream/upstream.ts';

const FORMS = ['chat', 'messages', 'responses', 'gemini'] as const;
const KIND = { chat: 'openrouter', messages: 'messages', responses: 'responses', gemini: 'gemini' };
const RUNS = samples(100, 3000);
const cuts = fc.array(fc.nat({ max: 4000 }), { maxLength: 8 });

function answer(form: (typeof FORMS)[number], stream: boolean, told: Told): Answer {
  if (form === 'gemini') return geminiAnswer(stream, told);
  return form === 'responses' ? responsesAnswer(stream, told) : answerOf(form, stream, told);
}

for (const form of FORMS) {
  test(`${form}: an answer is the same whether it is relayed as bytes or as text, cut anywhere`, async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryTold(), fc.boolean(), spelling(), cuts, async (told, stream, spell, positions) => {
        const { headers = {}, chunks } = answer(form, stream, told);
        const bytes = Buffer.concat(chunks!.map((chunk) => spell(chunk as string)));
        await assertSame(
          { served: form, kind: KIND[form], spoken: form, stream },
          { headers, pieces: cutBytes(bytes, positions) },
        );
      }),
      { numRuns: RUNS },
    );
  });

  for (const stream of [true, false]) {
    test(`${form}, ${stream ? 'streamed' : 'whole'}: cut in every character of several bytes, and broken off there`, async () => {
      const told: Told = {
        thinking: { text: 'é – 東京', signature: 'c2lnbmVk' },
        text: '“ß” 🍮 \ud83d',
        calls: [{ id: 'call_é', name: 'f', arguments: '{"k":"…"}' }],
        finish: 'tool_calls',
      };
      const { headers = {}, chunks } = answer(form, stream, told);
      const bytes = Buffer.concat(chunks!.map((chunk) => Buffer.from(chunk as string)));
      const asked = { served: form, kind: KIND[form], spoken: form, stream, provider: 'Größe – 東京' };
      for (let at = 1; at < bytes.length; at += 1) {
        // Within ASCII a cut is like the next one.
        if (bytes[at]! < 0x80 && bytes[at - 1]! < 0x80 && at % 17 > 0) continue;
        await assertSame(asked, { headers, pieces: cutBytes(bytes, [at]) });
        if (at % 3 === 0) await assertSame(asked, { headers, pieces: [bytes.subarray(0, at)], ending: 'break' });
      }
    });
  }
}

test('an answer that comes whole although a stream was asked for, or the other way round, is the same', async () => {
  const said: Told = { text: 'Zoë – 東京 🍮', finish: 'stop' };
  for (const form of FORMS) {
    for (const stream of [true, false]) {
      const { headers = {}, chunks } = answer(form, !stream, said);
      const pieces = [Buffer.from(chunks!.join(''))];
      const asked = { served: form, kind: KIND[form], spoken: form, stream, provider: 'Größe – 東京' };
      for (const announced of [
        headers,
        { 'content-type': 'text/event-stream' },
        { 'content-type': 'application/json' },
      ]) {
        const { text } = await assertSame(asked, { headers: announced, pieces });
        assert.match(text, /Zoë/);
      }
    }
  }
});

test('a failure that an upstream words in any language is reported in its own words', async () => {
  for (const form of FORMS) {
    for (const stream of [true, false]) {
      const error = { message: '模型过载 – réessayez', type: 'overloaded_error', code: null };
      const body = form === 'messages' ? { type: 'error', error } : { error };
      const text = stream ? `event: error\ndata: ${JSON.stringify(body)}\n\n` : JSON.stringify(body);
      const headers = { 'content-type': stream ? 'text/event-stream' : 'application/json' };
      const asked = { served: form, kind: KIND[form], spoken: form, stream, provider: 'Größe – 東京' };
      const begun = stream ? answer(form, true, { text: 'Zoë…' }).chunks!.slice(0, 3).join('') : '';
      for (const before of ['', begun]) {
        const seen = await assertSame(asked, { headers, pieces: [Buffer.from(before + text)] });
        assert.match(seen.text, /模型过载 – réessayez/);
      }
    }
  }
});

async function assertSame(asked: PipelineRequest, played: Played) {
  const { row, ...seen } = await playThrough(asked, played);
  const { row: textRow, ...textSeen } = await playThrough({ ...asked, textOnly: true }, played);
  assert.deepEqual(withoutIds(seen), withoutIds(textSeen));
  assert.deepEqual(withoutIds(row), withoutIds(textRow));
  return seen;
}

/** Each request has an id of its own. */
function withoutIds(seen: object): string {
  return JSON.stringify(seen, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value)).replaceAll(
    /(gen-|resp_|msg_|call_)[\w-]+/g,
    '$1',
  );
}

/** Writes some characters as escapes, and now and then breaks a byte. */
function spelling(): fc.Arbitrary<(text: string) => Buffer> {
  return fc
    .tuple(fc.infiniteStream(fc.boolean()), fc.option(fc.nat(), { freq: 3 }))
    .map(([escapes, broken]) => (text) => {
      const some = text.replace(/[\u0080-\uffff]/g, (unit) =>
        escapes.next().value ? unit : `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
      const bytes = Buffer.from(some);
      const high = [...bytes.keys()].filter((at) => bytes[at]! >= 0x80);
      if (broken !== null && high.length > 0) bytes[high[broken % high.length]!] = 0xff;
      return bytes;
    });
}

function arbitraryTold(): fc.Arbitrary<Told> {
  const text = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }),
    fc.constantFrom('“naïve” – 東京 🍮', 'half \ud83d a pair', '<think>é</think>ü', '\ud83d\ude00'),
  );
  const written = fc.constantFrom('{}', '{"n":12345678901234567890,"k":"é\\u00e9"}', '{"text":"東京 👩‍🚀"}');
  const call = fc.record({ name: fc.constantFrom('f', 'größe'), arguments: written });
  return fc
    .record({
      thinking: fc.option(fc.record({ text, signature: fc.constant('c2lnbmVk') }), { nil: undefined }),
      text: fc.option(text, { nil: undefined }),
      calls: fc.array(call, { maxLength: 2 }),
      usage: fc.option(fc.record({ input: fc.nat({ max: 1000 }), output: fc.nat({ max: 1000 }) }), { nil: undefined }),
    })
    .map(({ thinking, text: said, calls, usage }) => ({
      ...(thinking && { thinking }),
      ...(said !== undefined && { text: said }),
      calls: calls.map((one) => ({ id: 'call_é', ...one })),
      finish: calls.length > 0 ? 'tool_calls' : 'stop',
      ...(usage && { usage }),
    }));
}
