/** Answers of a service that has searched: where its citations point to, and what of its blocks returns to it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat } from '../../testing/clients/served-answer.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';
import { messagesBlock, messagesEnd, messagesStart } from '../../testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of all formats
type Json = any;

const SEARCH = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } };
const FOUND = {
  type: 'web_search_tool_result',
  tool_use_id: 'srvtoolu_1',
  content: [
    { type: 'web_search_result', url: 'https://a.example', title: 'A', encrypted_content: 'ZW5j', page_age: null },
  ],
};
const CITED = {
  type: 'web_search_result_location',
  url: 'https://a.example',
  title: 'A',
  encrypted_index: 'aW5k',
  cited_text: 'quote',
};
const CONTENT = [
  { type: 'text', text: 'Intro. ' },
  SEARCH,
  FOUND,
  { type: 'text', text: 'Héllo world', citations: [CITED] },
  { type: 'text', text: ' End.' },
];

/** The service sends the citations of a text ahead of it. */
function streamed(): string {
  const blocks = CONTENT.flatMap((block, index) => {
    if (!('text' in block)) return messagesBlock(index, block);
    const cited = (block.citations ?? []).map((citation) => ({ type: 'citations_delta', citation }));
    const texts = block.text!.split(/(?<= )/).map((text) => ({ type: 'text_delta', text }));
    return messagesBlock(index, { type: 'text', text: '' }, [...cited, ...texts]);
  });
  return [messagesStart(), ...blocks, ...messagesEnd('end_turn', { output_tokens: 5 })].join('');
}

function whole(): string {
  const about = { id: 'msg_up', type: 'message', role: 'assistant', model: 'up-model' };
  const end = { stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 10, output_tokens: 5 } };
  return JSON.stringify({ ...about, content: CONTENT, ...end });
}

function play(served: ClientFormat, stream: boolean, history?: Json[]) {
  const asked = { served, kind: 'anthropic', spoken: 'messages', stream } as const;
  const headers = { 'content-type': stream ? 'text/event-stream' : 'application/json' };
  const pieces = [Buffer.from(stream ? streamed() : whole())];
  return playThrough({ ...asked, ...(history && { messages: JSON.stringify(history) }) }, { headers, pieces });
}

const eventsOf = (text: string): Json[] => [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!));

/** The message (items, content) that a client sends back. */
function answerOf(served: ClientFormat, text: string, stream: boolean): Json[] {
  const events = stream ? eventsOf(text) : [JSON.parse(text)];
  switch (served) {
    case 'chat': {
      if (!stream) return [events[0].choices[0].message];
      const deltas = events.flatMap(({ choices }) => choices).map(({ delta }) => delta);
      const listOf = (key: string) => deltas.flatMap((delta) => delta[key] ?? []);
      const content = deltas.map((delta) => delta.content ?? '').join('');
      const [annotations, reasoning_details] = [listOf('annotations'), listOf('reasoning_details')];
      return [{ role: 'assistant', content, annotations, reasoning_details }];
    }
    case 'responses':
      return stream ? events.at(-1).response.output : events[0].output;
    case 'gemini': {
      const parts = events.flatMap((event) => event.candidates[0].content.parts);
      return [{ role: 'model', parts }];
    }
    case 'messages':
      assert.equal(stream, false, 'relayed');
      return [{ role: 'assistant', content: events[0].content }];
  }
}

describe('the citation of a whole text covers it', () => {
  for (const stream of [false, true]) {
    const how = stream ? 'streamed ahead of it' : 'whole';
    test(`${how}, to chat`, async () => {
      const [message] = answerOf('chat', (await play('chat', stream)).text, stream);
      assert.equal(message.content, 'Intro. Héllo world End.');
      const [{ url_citation: cited }] = message.annotations;
      assert.equal(message.content.slice(cited.start_index, cited.end_index), 'Héllo world');
      assert.deepEqual([cited.url, cited.title, cited.content], ['https://a.example', 'A', 'quote']);
    });

    test(`${how}, to responses`, async () => {
      const { text } = await play('responses', stream);
      const parts = answerOf('responses', text, stream).flatMap(({ content }) => content ?? []);
      const [part] = parts.filter(({ annotations }) => annotations?.length > 0);
      const [cited] = part.annotations;
      assert.equal(part.text.slice(cited.start_index, cited.end_index), 'Héllo world');
      if (!stream) return;
      const events = eventsOf(text);
      const told = events.filter(({ type }) => type === 'response.output_text.annotation.added');
      assert.deepEqual(
        told.map(({ annotation }) => annotation),
        [cited],
      );
      const done = events.findIndex((event) => event.type === 'response.output_text.done' && event.text === part.text);
      assert.ok(events.indexOf(told[0]) < done, 'an annotation after its text was done');
    });

    test(`${how}, to gemini`, async () => {
      const { text } = await play('gemini', stream);
      const said = answerOf('gemini', text, stream)[0].parts.map((part: Json) => (part.thought ? '' : part.text));
      const last = stream ? eventsOf(text).at(-1) : JSON.parse(text);
      const { groundingChunks: chunks, groundingSupports: supports } = last.candidates[0].groundingMetadata;
      assert.deepEqual(chunks, [{ web: { uri: 'https://a.example', title: 'A' } }]);
      assert.equal(supports.length, 1);
      const { startIndex, endIndex, text: segment } = supports[0].segment;
      assert.equal(Buffer.from(said.join('')).subarray(startIndex, endIndex).toString(), 'Héllo world');
      assert.equal(segment, 'Héllo world');
      assert.deepEqual(supports[0].groundingChunkIndices, [0]);
    });
  }
});

describe('the search and what it found return to the service', () => {
  for (const served of CLIENT_FORMATS) {
    for (const stream of served === 'messages' ? [false] : [false, true]) {
      test(`from ${served}, ${stream ? 'streamed' : 'whole'}`, async () => {
        const hi = served === 'gemini' ? { role: 'user', parts: [{ text: 'hi' }] } : { role: 'user', content: 'hi' };
        const first = await play(served, stream);
        const { sent } = await play(served, stream, [hi, ...answerOf(served, first.text, stream), hi]);
        const [, { content: blocks }] = JSON.parse(sent).messages;
        const found = blocks
          .filter(({ type }: Json) => type !== 'text')
          .map(({ cache_control: _, ...block }: Json) => block);
        assert.deepEqual(found, [SEARCH, FOUND]);
        const texts = blocks.map(({ text }: Json) => text ?? '').join('');
        assert.equal(texts, 'Intro. Héllo world End.');
      });
    }
  }
});
