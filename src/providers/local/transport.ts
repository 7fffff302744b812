import type { Transport, UpstreamReceiver, UpstreamRequest } from '../send/transport.ts';
import { DIMENSIONS, MAX_TEXT_LENGTH } from './embedder.ts';
import { type Embedded, EmbeddingThread } from './thread.ts';

/** Texts per job of the thread, so that one long list does not delay others. */
export const MAX_TEXTS = 32;
/** The only one. */
export const MODEL = 'use-lite';
const JSON_HEADERS = { 'content-type': 'application/json' };

interface Body {
  model: string;
  input?: string | string[];
  query?: string;
  documents?: string[];
}

/** Embeds in a thread of its own; rerank compares the query's vector with each document's. */
export function localTransport(thread = new EmbeddingThread()): Transport {
  return {
    send(request, receiver) {
      let over = false;
      const answer = (status: number, body: unknown) => {
        if (over) return;
        over = true;
        receiver.head(status, JSON_HEADERS);
        receiver.data(Buffer.from(JSON.stringify(body)));
        receiver.end();
      };
      const cancel = begin(request, receiver, thread, answer);
      return {
        pause() {},
        resume() {},
        abort() {
          over = true;
          cancel();
        },
      };
    },
    close: () => thread.close(),
  };
}

function begin(
  request: UpstreamRequest,
  receiver: UpstreamReceiver,
  thread: EmbeddingThread,
  answer: (status: number, body: unknown) => void,
): () => void {
  const body = JSON.parse(request.body.toString()) as Body;
  const ranks = request.url.endsWith('/rerank');
  const texts = ranks ? [body.query!, ...body.documents!] : [body.input!].flat();
  const problem = problemOf(body.model, texts);
  if (problem !== undefined) {
    queueMicrotask(() => answer(problem.status, { error: problem }));
    return () => {};
  }
  return thread.embed(texts, (result) => {
    if ('problem' in result) fail(result, receiver, answer);
    else answer(200, ranks ? ranking(result) : list(result));
  });
}

function problemOf(model: string, texts: readonly string[]) {
  if (model !== MODEL) return { status: 404, code: 'model_not_found', message: `there is no local model ${model}` };
  if (texts.some((text) => text.trim() === '')) {
    return { status: 400, code: 'invalid_request', message: 'the local model does not accept empty texts' };
  }
  if (texts.some((text) => text.length > MAX_TEXT_LENGTH)) {
    const message = `a text exceeds the context length: it is longer than ${MAX_TEXT_LENGTH} characters`;
    return { status: 400, code: 'context_length_exceeded', message };
  }
  return undefined;
}

function fail(
  { problem, kind }: Extract<Embedded, { problem: string }>,
  receiver: UpstreamReceiver,
  answer: (status: number, body: unknown) => void,
): void {
  if (kind === 'too_long') answer(400, { error: { code: 'context_length_exceeded', message: problem } });
  else if (kind === 'busy') answer(503, { error: { code: 'overloaded', message: problem } });
  else receiver.failed({ kind: 'server', status: null, message: problem }, false);
}

type Vectors = Extract<Embedded, { vectors: Float32Array }>;

function list({ vectors, tokens }: Vectors) {
  const data = Array.from({ length: vectors.length / DIMENSIONS }, (_, index) => {
    const own = vectors.subarray(index * DIMENSIONS, (index + 1) * DIMENSIONS);
    const embedding = Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString('base64');
    return { object: 'embedding', index, embedding };
  });
  return { object: 'list', data, model: MODEL, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

function ranking({ vectors, tokens }: Vectors) {
  const results = Array.from({ length: vectors.length / DIMENSIONS - 1 }, (_, index) => {
    let score = 0;
    const from = (index + 1) * DIMENSIONS;
    for (let place = 0; place < DIMENSIONS; place += 1) score += vectors[place]! * vectors[from + place]!;
    return { index, relevance_score: score };
  });
  return { results, usage: { total_tokens: tokens } };
}
