/**
 * Laws of translation for Gemini on generated answers through the whole pipeline: the answer reaches a client of every
 * format, and what that client sends back on the next turn reaches the service as it was.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readMessageStream } from '../../testing/clients/messages-client.ts';
import { assertServed, readServedStream, readServedWhole } from '../../testing/clients/served-answer.ts';
import { type PipelineAnswer, playThrough } from '../../testing/laws/pipeline.ts';
import { samples } from '../../testing/laws/samples.ts';
import { readServerSentEvents } from '../../testing/recordings/corpus.ts';
import { cutBytes } from '../../testing/recordings/cuts.ts';
import { readGeminiStream, readGeminiWhole } from '../../testing/recordings/recorded-gemini.ts';

const RUNS = samples(100, 2000);

// biome-ignore lint/suspicious/noExplicitAny: JSON of three formats
type Json = any;

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 });
const signature = fc.uint8Array({ minLength: 3, maxLength: 30 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const args = fc.constantFrom<Json>({}, { place: 'é 東京' }, { list: [1, { deep: null }], on: true });
const call = fc
  .record({
    name: fc.constantFrom('f', 'g'),
    args,
    id: fc.option(fc.uuid(), { nil: undefined }),
    thoughtSignature: fc.option(signature, { nil: undefined }),
  })
  .map(({ thoughtSignature, id, ...rest }) => ({
    functionCall: { ...(id !== undefined && { id }), ...rest },
    ...(thoughtSignature !== undefined && { thoughtSignature }),
  }));
const code = signature.map((thoughtSignature) => ({
  executableCode: { language: 'PYTHON', code: 'print(1)' },
  thoughtSignature,
}));

/** Thoughts, text followed by its signature, the service's own code, calls: the order in which Gemini writes them. */
const answer = fc
  .record({
    thought: fc.option(fc.record({ text, thought: fc.constant(true) }), { nil: undefined }),
    text: fc.option(
      text.map((said) => ({ text: said })),
      { nil: undefined },
    ),
    signature: fc.option(
      signature.map((thoughtSignature) => ({ text: '', thoughtSignature })),
      { nil: undefined },
    ),
    code: fc.option(code, { nil: undefined }),
    calls: fc.array(call, { maxLength: 3 }),
  })
  .map((one): Json[] => {
    const parts = [one.thought, one.text, one.text && one.signature, one.code, ...one.calls].filter(Boolean);
    return one.text || one.calls.length > 0 ? parts : [...parts, { text: 'something' }];
  });

function bytesOf(parts: Json[], stream: boolean): Buffer {
  const about = { responseId: 'resp-1', modelVersion: 'gemini-3-pro-preview' };
  const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 3, thoughtsTokenCount: 2, totalTokenCount: 12 };
  if (!stream) {
    return Buffer.from(
      JSON.stringify({ ...about, candidates: [{ content: { parts }, finishReason: 'STOP' }], usageMetadata }),
    );
  }
  const events = parts.map((part, at) => ({
    ...about,
    candidates: [{ content: { parts: [part] }, ...(at === parts.length - 1 && { finishReason: 'STOP' }) }],
    usageMetadata,
  }));
  return Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join(''));
}

const cuts = fc.array(fc.nat({ max: 3000 }), { maxLength: 6 });

for (const served of ['chat', 'messages', 'gemini'] as const) {
  test(`${served}: an answer reaches the client, and on the next turn the service, signatures included`, async () => {
    await fc.assert(
      fc.asyncProperty(answer, fc.boolean(), cuts, async (parts, stream, positions) => {
        const bytes = bytesOf(parts, stream);
        const asked = { served, kind: 'gemini', spoken: 'gemini', stream } as const;
        const headers = { 'content-type': stream ? 'text/event-stream' : 'application/json' };
        const seen = await playThrough(asked, { headers, pieces: cutBytes(bytes, positions) });
        const received = stream ? readServedStream(served, seen.text, 'finish') : readServedWhole(served, seen.text);
        const recorded = stream ? readGeminiStream(bytes, 'close') : readGeminiWhole(bytes.toString());
        assertServed(served, received, recorded, served);

        const user = { role: 'user', content: 'hi' };
        const history = served === 'gemini' ? contentsOf(seen, stream) : [user, ...historyOf(served, seen, stream)];
        const second = await playThrough({ ...asked, messages: JSON.stringify(history) }, { headers, pieces: [bytes] });
        const { contents } = JSON.parse(second.sent);
        const said = contents.filter(({ role }: Json) => role === 'model').flatMap((content: Json) => content.parts);
        assert.deepEqual(comparable(said), comparable(parts));
        const calls = parts.filter((part) => part.functionCall).length;
        assert.equal(calls === 0 ? 0 : contents.at(-1).parts.length, calls);
      }),
      { numRuns: RUNS },
    );
  });
}

/** A Gemini client keeps every event of a stream as a content of its own. */
function contentsOf({ text: written }: PipelineAnswer, stream: boolean): Json[] {
  const replies: Json[] = stream
    ? readServerSentEvents(written).map(({ data }) => JSON.parse(data))
    : [JSON.parse(written)];
  const said = replies.map(({ candidates }) => ({ role: 'model', parts: candidates[0].content.parts }));
  const calls = said.flatMap(({ parts }) => parts.flatMap((part: Json) => part.functionCall ?? []));
  const results = calls.map(({ id, name }: Json) => ({
    functionResponse: { ...(id !== undefined && { id }), name, response: { output: 'done' } },
  }));
  const hi = { role: 'user', parts: [{ text: 'hi' }] };
  return [hi, ...said, ...(results.length > 0 ? [{ role: 'user', parts: results }] : [])];
}

/** The answer and the results of its calls, as a client sends them back. */
function historyOf(served: 'chat' | 'messages', seen: PipelineAnswer, stream: boolean): Json[] {
  const said = served === 'chat' ? chatMessage(seen, stream) : messageContent(seen, stream);
  if (served === 'chat') {
    const results = (said.tool_calls ?? []).map(({ id }: Json) => ({
      role: 'tool',
      tool_call_id: id,
      content: 'done',
    }));
    return [said, ...results];
  }
  const uses = said.filter(({ type }: Json) => type === 'tool_use');
  const results = uses.map(({ id }: Json) => ({ type: 'tool_result', tool_use_id: id, content: 'done' }));
  const turn = { role: 'assistant', content: said };
  return results.length === 0 ? [turn] : [turn, { role: 'user', content: results }];
}

/** The message as clients assemble it from the chunks of a stream. */
function chatMessage({ text: written }: PipelineAnswer, stream: boolean): Json {
  if (!stream) return JSON.parse(written).choices[0].message;
  const message: Json = { role: 'assistant', content: '', reasoning_details: [], tool_calls: [] };
  for (const { data } of readServerSentEvents(written)) {
    if (data === '[DONE]') continue;
    const { delta } = JSON.parse(data).choices[0] ?? { delta: {} };
    message.content += delta.content ?? '';
    message.reasoning_details.push(...(delta.reasoning_details ?? []));
    for (const piece of delta.tool_calls ?? []) {
      message.tool_calls[piece.index] ??= {
        id: piece.id,
        type: 'function',
        function: { name: piece.function.name, arguments: '' },
      };
      message.tool_calls[piece.index].function.arguments += piece.function.arguments ?? '';
    }
  }
  if (message.tool_calls.length === 0) delete message.tool_calls;
  return message;
}

function messageContent({ text: written }: PipelineAnswer, stream: boolean): Json[] {
  if (!stream) return JSON.parse(written).content;
  const message = readMessageStream(written);
  return message.content.map((block) =>
    block.type === 'tool_use' ? { ...block, input: JSON.parse(message.inputs.get(block) || '{}') } : block,
  );
}

/** The parts in a normalized order: a chat client keeps parts it cannot read apart from the text. Ids may be given. */
function comparable(parts: Json[]): string[] {
  return parts
    .map(({ functionCall, ...part }) =>
      JSON.stringify({ ...part, ...(functionCall && { call: [functionCall.name, functionCall.args] }) }),
    )
    .sort();
}
