/** Streams for every pair of a served and a spoken format: the mock upstream's responses, and the cases. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { awsMessage } from '../src/testing/recordings/corpus.ts';

const SERVED = ['chat', 'messages', 'responses'];
const SPOKEN = ['chat', 'messages', 'responses', 'gemini', 'converse', 'cohere'];
const PATHS = { chat: '/chat/completions', messages: '/messages', responses: '/responses' };

const PIECES = 250;
/** About as many characters as make an event of the chat form 270 bytes long. */
const PIECE = ' w000abcdefghijklmnopq';

/** The relayed pair of a served form stands before its translated ones, whose yardstick it is. */
export const PAIRS = SERVED.flatMap((served) =>
  [served, ...SPOKEN.filter((spoken) => spoken !== served)].map((spoken) => ({
    name: `pair ${served} on ${spoken}, paced`,
    unit: 'events',
    bytes: 1000,
    stream: true,
    pair: true,
    served,
    form: `${served} on ${spoken}`,
    yardstick: `pair ${served} on ${served}, paced`,
    load: ['50', 'stagger=20000'],
  })),
);

/** The pairs that a text names, each with its yardstick; the usual cases have names of their own. */
export function pairsNamed(text) {
  if (!text.startsWith('pair')) return [];
  const named = PAIRS.filter(({ name }) => name.includes(text));
  return PAIRS.filter((each) => named.includes(each) || named.some(({ yardstick }) => yardstick === each.name));
}

/** What a gateway is asked for a pair, by `form`. */
export const PAIR_FORMS = Object.fromEntries(
  PAIRS.map(({ form, served }) => [form, { path: `/api/v1${PATHS[served]}`, model: `pair/${form.split(' on ')[1]}` }]),
);

/** One provider for each spoken form, below a path of its own at the mock. */
export function pairProviders(provider, upstreamPort) {
  return SPOKEN.map((spoken) => ({
    ...provider,
    id: `pair-${spoken}`,
    kind: spoken,
    base_url: `http://127.0.0.1:${upstreamPort}/pair-${spoken}`,
    models: [{ ...provider.models[0], id: `pair/${spoken}`, upstream_id: 'm' }],
  }));
}

/** Files of frames for the mock: each a length (four bytes, little-endian) and the bytes of one write. @returns its arguments */
export function writeFrames(folder) {
  return SPOKEN.map((spoken) => {
    const file = path.join(folder, `${spoken}.frames`);
    writeFileSync(file, framesOf(FRAMES[spoken]()));
    const type = spoken === 'converse' ? 'application/vnd.amazon.eventstream' : 'text/event-stream';
    return `/pair-${spoken}/=${type}=${file}`;
  });
}

/** Each text with its length before it, as the mock upstream reads them. */
export function framesOf(texts) {
  const frames = texts.map((text) => {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([length, bytes]);
  });
  return Buffer.concat(frames);
}

const data = (value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const named = (value) => `event: ${value.type}\n${data(value)}`;
const pieces = (frameOf) => Array.from({ length: PIECES }, () => frameOf(PIECE));

const FRAMES = {
  chat() {
    const head = { id: 'chatcmpl-9aBcDeFg', object: 'chat.completion.chunk', created: 1735689600, model: 'm' };
    const chunk = (delta, finish_reason = null) =>
      data({ ...head, system_fingerprint: 'fp_0', choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
    const usage = { prompt_tokens: 231, completion_tokens: 200, total_tokens: 431 };
    return [
      ...pieces((content) => chunk({ content })),
      chunk({}, 'stop') + data({ ...head, choices: [], usage }) + data('[DONE]'),
    ];
  },
  messages() {
    const message = { id: 'msg_01', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null };
    const usage = { input_tokens: 231, output_tokens: 1 };
    const text = (delta) =>
      named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: delta } });
    return [
      named({ type: 'message_start', message: { ...message, stop_sequence: null, usage } }) +
        named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      ...pieces(text),
      named({ type: 'content_block_stop', index: 0 }) +
        named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 200 } }) +
        named({ type: 'message_stop' }),
    ];
  },
  responses() {
    let sequence_number = 0;
    const event = (type, more) => {
      sequence_number += 1;
      return named({ type, sequence_number, ...more });
    };
    const response = { id: 'resp_01', object: 'response', created_at: 1735689600, model: 'm', status: 'in_progress' };
    const at = { item_id: 'msg_01', output_index: 0, content_index: 0 };
    const part = (text) => ({ type: 'output_text', text, annotations: [] });
    const item = (status, content) => ({ id: 'msg_01', type: 'message', role: 'assistant', status, content });
    const whole = PIECE.repeat(PIECES);
    const opening =
      event('response.created', { response: { ...response, output: [] } }) +
      event('response.output_item.added', { output_index: 0, item: item('in_progress', []) }) +
      event('response.content_part.added', { ...at, part: part('') });
    const deltas = pieces((delta) => event('response.output_text.delta', { ...at, delta }));
    const done = { ...response, status: 'completed', output: [item('completed', [part(whole)])] };
    const usage = {
      input_tokens: 231,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 200,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 431,
    };
    return [
      opening,
      ...deltas,
      event('response.output_text.done', { ...at, text: whole }) +
        event('response.content_part.done', { ...at, part: part(whole) }) +
        event('response.output_item.done', { output_index: 0, item: item('completed', [part(whole)]) }) +
        event('response.completed', { response: { ...done, usage } }),
    ];
  },
  gemini() {
    const usageMetadata = { promptTokenCount: 231, candidatesTokenCount: 200, totalTokenCount: 431 };
    const chunk = (text, more) =>
      data({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }], usageMetadata });
    return [...pieces((text) => chunk(text)), chunk('', { finishReason: 'STOP' })];
  },
  converse() {
    const event = (type, payload) =>
      awsMessage(
        { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
        Buffer.from(JSON.stringify(payload)),
      );
    const usage = { inputTokens: 231, outputTokens: 200, totalTokens: 431 };
    return [
      event('messageStart', { role: 'assistant' }),
      ...pieces((text) => event('contentBlockDelta', { contentBlockIndex: 0, delta: { text } })),
      Buffer.concat([
        event('contentBlockStop', { contentBlockIndex: 0 }),
        event('messageStop', { stopReason: 'end_turn' }),
        event('metadata', { usage, metrics: { latencyMs: 10 } }),
      ]),
    ];
  },
  cohere() {
    const usage = {
      billed_units: { input_tokens: 231, output_tokens: 200 },
      tokens: { input_tokens: 231, output_tokens: 200 },
    };
    const text = (delta) =>
      named({ type: 'content-delta', index: 0, delta: { message: { content: { text: delta } } } });
    return [
      named({ id: 'c-1', type: 'message-start', delta: { message: { role: 'assistant', content: [] } } }) +
        named({ type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text: '' } } } }),
      ...pieces(text),
      named({ type: 'content-end', index: 0 }) +
        named({ type: 'message-end', delta: { finish_reason: 'COMPLETE', usage } }) +
        data('[DONE]'),
    ];
  },
};
