/** Vectors of texts: a request to `POST /embeddings` that the gateway makes for a caller, with a reservation and a row of its own. */
import type { Caller } from '../access/index.ts';
import { GatewayError } from '../base/errors.ts';
import { readDocument, stringifyJson } from '../base/json.ts';
import type { Fields } from '../formats/conversation/fields.ts';
import { embedding } from '../formats/embedding/index.ts';
import { accept } from './accept.ts';
import { WholeSink } from './answer/whole-sink.ts';
import { embeddingBody, vectorsIn } from './embedding-words.ts';
import type { InferenceParts } from './parts.ts';
import type { RequestAbout } from './request.ts';
import { serve } from './serve.ts';

const ABOUT: RequestAbout = {
  requestId: null,
  region: 'global',
  userAgent: null,
  origin: '',
  title: null,
  sessionId: null,
  metadata: false,
  headers: {},
};

/** One vector for each text. Rejects with GatewayError as for a client's request, or with the reason of the signal. */
export async function embed(
  parts: InferenceParts,
  caller: Caller,
  { model, texts }: { model: string; texts: readonly string[] },
  signal: AbortSignal,
): Promise<Float32Array[]> {
  signal.throwIfAborted();
  const document = readDocument(Buffer.from(stringifyJson(embeddingBody(model, texts))));
  const request = accept(embedding, document, caller, parts.clock.now(), ABOUT);
  const sink = new WholeSink();
  const leave = () => sink.close();
  signal.addEventListener('abort', leave, { once: true });
  try {
    await serve(sink.observed(request), sink, parts);
  } finally {
    signal.removeEventListener('abort', leave);
  }
  signal.throwIfAborted();
  if (sink.failure !== undefined) throw sink.failure;
  if (sink.status !== 200) throw new GatewayError('server', 'the request was aborted');
  return vectorsIn(JSON.parse(sink.body!.toString()) as Fields, texts.length);
}
