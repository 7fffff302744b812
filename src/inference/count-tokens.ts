/**
 * How many tokens a conversation of the messages form has: the provider's own count where it gives one to anybody with a
 * key, else an estimate that says so. Nothing is generated, so nothing is reserved, charged or entered.
 */
import type { Caller } from '../access/index.ts';
import { type JsonDocument, stringifyJson } from '../base/json.ts';
import type { Endpoint } from '../catalog/index.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import { isFields } from '../formats/conversation/fields.ts';
import type { TokenCount as Counting, SpokenFormat } from '../formats/conversation/format.ts';
import { Losses, Uncarried } from '../formats/conversation/losses.ts';
import { messages, spokenFormat } from '../formats/index.ts';
import type { Exchange } from '../http/operation.ts';
import { deliver, type UpstreamReceiver } from '../providers/index.ts';
import { ConversationTask } from './conversation.ts';
import { clientError } from './decide.ts';
import { guarded } from './guard.ts';
import { estimateTokens } from './meter.ts';
import type { InferenceParts } from './parts.ts';
import type { InferenceRequest } from './request.ts';
import { routeOf } from './serve.ts';

/** A picture of usual size. */
const IMAGE_TOKENS = 1_600;
/** Role and borders. */
const MESSAGE_TOKENS = 4;
const LARGEST_REPLY = 64 * 1024;

export interface TokenCount {
  input_tokens: number;
  estimated?: true;
}

/** @throws GatewayError 400 for an unknown model, and what the provider finds wrong with the request */
export async function countTokens(
  asked: InferenceRequest,
  exchange: Pick<Exchange<Caller>, 'onClose'>,
  parts: InferenceParts,
): Promise<TokenCount> {
  const request = guarded(asked, (document) => asked.format.asked(document.value), parts);
  const { document } = request;
  // What may not have the conversation may not count it either.
  const { candidates } = routeOf(request, new ConversationTask(request, parts), parts);
  for (const { endpoint } of candidates) {
    const { countsTokens, speaks } = endpoint.provider.kind;
    const spoken = countsTokens && speaks !== undefined ? spokenFormat(speaks) : undefined;
    const body = spoken?.tokenCount && bodyFor(spoken, spoken.tokenCount, endpoint, document);
    if (body === undefined) continue;
    const counted = await askProvider(exchange, request, { endpoint, spoken: spoken!, body }, parts);
    if (typeof counted === 'number') return { input_tokens: counted };
    const { failure } = counted;
    // What is wrong with the request is worth knowing; for any other trouble the estimate does.
    if (failure.kind === 'invalid_request' || failure.kind === 'context_length') {
      const { provider, modelId } = endpoint;
      throw clientError([{ providerId: provider.id, providerName: provider.name, modelId, failure }]);
    }
  }
  return { input_tokens: estimate(document), estimated: true };
}

/** What is counted, in the words of the service; undefined where its form cannot carry the conversation. */
function bodyFor(
  spoken: SpokenFormat,
  counting: Counting,
  { provider: { kind }, upstreamId, maxCompletionTokens }: Endpoint,
  { exact }: JsonDocument,
): string | undefined {
  if (spoken.id === messages.id) return stringifyJson(counting.body(exact, upstreamId));
  const target = {
    model: upstreamId,
    stream: false,
    maxOutputTokens: maxCompletionTokens,
    origin: kind.originFor?.(upstreamId) ?? kind.origin,
    // Nobody is named to a service that only counts.
    user: '',
    dialect: kind.dialect,
  };
  try {
    return stringifyJson(counting.body(spoken.encode(messages.decode(exact), target, new Losses()), upstreamId));
  } catch (error) {
    if (error instanceof Uncarried) return undefined;
    throw error;
  }
}

interface Asking {
  endpoint: Endpoint;
  spoken: SpokenFormat;
  body: string;
}

function askProvider(
  exchange: Pick<Exchange<Caller>, 'onClose'>,
  { about }: InferenceRequest,
  { endpoint, spoken, body }: Asking,
  parts: InferenceParts,
): Promise<number | { failure: UpstreamFailure }> {
  const { provider, upstreamId } = endpoint;
  return new Promise((resolve) => {
    const receiver = new CountReceiver((status, text) => resolve(readCount(spoken, status, text)));
    const call = deliver(
      {
        provider,
        credential: parts.credentials.choose(endpoint).value,
        form: spoken.id,
        model: upstreamId,
        stream: false,
        path: spoken.tokenCount!.path(upstreamId),
        body,
        clientHeaders: about.headers,
      },
      receiver,
      parts,
    );
    exchange.onClose(() => {
      call.abort();
      resolve(0);
    });
  });
}

function readCount(spoken: SpokenFormat, status: number, text: string): number | { failure: UpstreamFailure } {
  if (status >= 400) return { failure: spoken.decodeFailure(status, text) };
  try {
    const count = spoken.tokenCount!.read(JSON.parse(text));
    if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
  } catch {
    // Told below.
  }
  return { failure: { kind: 'malformed', status, message: 'the upstream answered without a count' } };
}

class CountReceiver implements UpstreamReceiver {
  readonly #done: (status: number, text: string) => void;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #status = 0;

  constructor(done: (status: number, text: string) => void) {
    this.#done = done;
  }

  head(status: number): void {
    this.#status = status;
  }

  data(chunk: Buffer): void {
    if (this.#size < LARGEST_REPLY) this.#chunks.push(chunk);
    this.#size += chunk.length;
  }

  end(): void {
    this.#done(this.#status, Buffer.concat(this.#chunks).toString('utf8'));
  }

  failed(): void {
    this.#done(502, '');
  }
}

/** From the length of every text; a picture counts as one of usual size, however many bytes it has. */
function estimate(document: JsonDocument): number {
  const { messages: turns, system, tools } = document.value;
  const { bytes, images } = textOf([turns, system, tools]);
  const count = Array.isArray(turns) ? turns.length : 0;
  return estimateTokens(bytes) + images * IMAGE_TOKENS + count * MESSAGE_TOKENS;
}

function textOf(value: unknown): { bytes: number; images: number } {
  if (typeof value === 'string') return { bytes: Buffer.byteLength(value), images: 0 };
  if (!isFields(value) && !Array.isArray(value)) return { bytes: 0, images: 0 };
  if (isFields(value) && value['type'] === 'image') return { bytes: 0, images: 1 };
  const total = { bytes: 0, images: 0 };
  for (const item of Object.values(value)) {
    const { bytes, images } = textOf(item);
    total.bytes += bytes;
    total.images += images;
  }
  return total;
}
