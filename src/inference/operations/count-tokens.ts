/**
 * Counts the tokens of a conversation: by the provider's own counting operation where it has
 * one, otherwise as an estimate marked as such. Nothing is generated, so nothing is reserved, charged or recorded.
 */
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { type JsonDocument, stringifyJson } from '../../base/json.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import { type Fields, isFields } from '../../formats/conversation/fields.ts';
import type {
  TokenCount as Counting,
  MediumKind,
  ServedFormat,
  SpokenFormat,
} from '../../formats/conversation/format.ts';
import { Losses, Uncarried } from '../../formats/conversation/losses.ts';
import { messages, spokenFormat } from '../../formats/index.ts';
import type { Exchange } from '../../http/operation.ts';
import { deliver, type UpstreamReceiver } from '../../providers/index.ts';
import { estimateTokens } from '../accounting/meter.ts';
import { admit } from '../admission/admit.ts';
import { RequestContext } from '../context.ts';
import { ConversationTask } from '../conversation-task.ts';
import { remoteMedia } from '../media/remote.ts';
import type { InferenceParts } from '../parts.ts';
import type { ConversationRequest } from '../request.ts';
import { type Candidate, targetOf } from '../routing/index.ts';
import { routeOf } from '../serve.ts';
import { encodingOf } from '../tokens/family.ts';
import { requestText } from '../tokens/request-text.ts';
import type { WantedTools } from '../turns/gateway-tools.ts';
import { gatewayToolsFor } from '../turns/turn-loop.ts';
import { clientError, failedAt } from '../turns/verdict.ts';
import { HttpSink } from './http-sink.ts';

/** An image of usual size. */
const IMAGE_TOKENS = 1_600;
/** The role and the separators of one message. */
const MESSAGE_TOKENS = 4;
/** The tokens that open the answer. */
const ANSWER_TOKENS = 3;
const MAX_REPLY_BYTES = 64 * 1024;

interface TokenCount {
  input_tokens: number;
  estimated?: true;
}

/**
 * @throws GatewayError 400 for an unknown model, 429 over a request limit, and the provider's own 400 for a bad request
 */
export async function countTokens(
  accepted: ConversationRequest,
  exchange: Exchange<Caller>,
  parts: InferenceParts,
): Promise<TokenCount> {
  const context = new RequestContext(accepted, new HttpSink(exchange), parts.clock);
  await admit(context, parts);
  for (const [name, value] of Object.entries(context.headers ?? {})) exchange.response.setHeader(name, value);
  const { request } = context;
  const { document, format } = request;
  await parts.refresh?.();
  // Counting needs the same permissions as the conversation itself.
  const { candidates } = routeOf(context, new ConversationTask(context, parts), parts);
  // Files are not read only to be counted.
  const hasFiles = (context.files?.size ?? 0) > 0;
  const ownTools = gatewayToolsFor(request, parts);
  for (const candidate of candidates) {
    const { endpoint } = candidate;
    const counting = countingOf(endpoint);
    const body = counting && !hasFiles && bodyFor(counting, endpoint, { format, document, ownTools });
    if (!counting || !body) continue;
    const counted = await countByProvider(exchange, request, { candidate, ...counting, body }, parts);
    // Counting does not list the tools of MCP servers.
    const estimated = ownTools?.discover !== undefined;
    if (typeof counted === 'number') return { input_tokens: counted, ...(estimated && { estimated }) };
    const { failure } = counted;
    // Some clouds do not count tokens for every model; that is not a fault of the request.
    if (/count(ing)? tokens/i.test(failure.message)) continue;
    // A fault of the request is reported to the client; for any other failure the estimate will do.
    if (failure.kind === 'invalid_request' || failure.kind === 'context_length') {
      throw clientError([failedAt(candidate, failure)]);
    }
  }
  return countLocally(inMessages(format, document), candidates[0]?.endpoint, parts);
}

/**
 * The messages and tools in the messages format, which is the one that is counted locally; settings have no tokens.
 * @throws GatewayError 400 for content that this format cannot express
 */
function inMessages(format: ServedFormat, { exact, value }: JsonDocument): Fields {
  if (format.id === messages.id) return value;
  const target = { model: '', stream: false, maxOutputTokens: null, origin: 'unknown', user: '', dialect: {} } as const;
  try {
    const { messages: turns, tools } = format.decode(exact);
    return messages.encode({ messages: turns, ...(tools && { tools }), settings: {} }, target, new Losses()) as Fields;
  } catch (error) {
    if (!(error instanceof Uncarried)) throw error;
    throw new GatewayError('invalid_request', `tokens cannot be counted for this content: ${error.message}`, {
      path: format.history.root,
    });
  }
}

/** Counts with the model's own tokenizer, if it has one: exact for texts, an estimate for tools and images. */
async function countLocally(
  value: Fields,
  endpoint: Endpoint | undefined,
  { tokens }: InferenceParts,
): Promise<TokenCount> {
  const encoding = endpoint && encodingOf(endpoint.upstreamId);
  const { messages: turns, system, tools } = value;
  const { texts, images, plain } = textsOf([system, turns]);
  const counted = encoding && (await tokens?.count(encoding, texts.join('\n')));
  if (counted === undefined) return { input_tokens: estimate(value), estimated: true };
  const declared = Array.isArray(tools) ? tools : [];
  const described = declared.length === 0 ? 0 : await tokens?.count(encoding!, requestText({ tools: declared }));
  const count = (Array.isArray(turns) ? turns.length : 0) + (system === undefined ? 0 : 1);
  // In the prompt the texts are separate, so the line breaks that join them here do not count.
  const separators = count * MESSAGE_TOKENS + ANSWER_TOKENS - Math.max(texts.length - 1, 0);
  const input_tokens = Math.max(counted + (described ?? 0) + images * IMAGE_TOKENS + separators, 0);
  return plain && declared.length === 0 ? { input_tokens } : { input_tokens, estimated: true };
}

/** `plain`: the content is text only. */
function textsOf(content: unknown): { texts: string[]; images: number; plain: boolean } {
  const found = { texts: [] as string[], images: 0, plain: true };
  const visit = (value: unknown): void => {
    if (typeof value === 'string') found.texts.push(value);
    else if (Array.isArray(value)) value.forEach(visit);
    else if (isFields(value) && 'role' in value) visit(value['content']);
    else if (isFields(value) && value['type'] === 'text') visit(value['text']);
    else if (isFields(value)) {
      found.plain = false;
      if (value['type'] === 'image') found.images += 1;
      else found.texts.push(requestText(value));
    }
  };
  visit(content);
  return found;
}

/** How the endpoint's provider counts for this model; undefined if it does not. */
function countingOf({
  provider: { kind },
  upstreamId,
}: Endpoint): Pick<CountingCall, 'spoken' | 'counting'> | undefined {
  const { countsTokens, speaks } = kind;
  if (countsTokens === undefined) return undefined;
  if (countsTokens !== true) {
    const own = countsTokens(upstreamId);
    return own && { spoken: spokenFormat(own.format), counting: own.counting };
  }
  const spoken = speaks === undefined ? undefined : spokenFormat(speaks);
  return spoken?.tokenCount && { spoken, counting: spoken.tokenCount };
}

interface Counted {
  format: ServedFormat;
  document: JsonDocument;
  ownTools: WantedTools | undefined;
}

/**
 * The body of the provider's counting operation. Undefined if its format cannot carry the conversation or cannot read
 * the URL of a medium in it: media are not fetched only to be counted.
 */
function bodyFor(
  { spoken, counting }: Pick<CountingCall, 'spoken' | 'counting'>,
  { provider: { kind }, upstreamId, maxCompletionTokens }: Endpoint,
  { format, document: { exact }, ownTools }: Counted,
): string | undefined {
  const wantsBytes = (medium: MediumKind, url: string) => spoken.wantsBytes?.(medium, url, kind.dialect) ?? false;
  if (spoken.wantsBytes !== undefined && remoteMedia(format.decode(exact), wantsBytes).size > 0) return undefined;
  if (spoken.id === format.id && ownTools === undefined) return stringifyJson(counting.body(exact, upstreamId));
  const target = {
    model: upstreamId,
    stream: false,
    maxOutputTokens: maxCompletionTokens,
    origin: kind.originFor?.(upstreamId) ?? kind.origin,
    // A counting operation gets no user identity.
    user: '',
    dialect: kind.dialect,
  };
  try {
    const decoded = format.decode(exact);
    // Tools that the gateway runs are functions for the model.
    const conversation = ownTools === undefined ? decoded : ownTools.begin(decoded, format).conversation;
    return stringifyJson(counting.body(spoken.encode(conversation, target, new Losses()), upstreamId));
  } catch (error) {
    if (error instanceof Uncarried) return undefined;
    throw error;
  }
}

interface CountingCall {
  candidate: Candidate;
  spoken: SpokenFormat;
  counting: Counting;
  body: string;
}

function countByProvider(
  exchange: Pick<Exchange<Caller>, 'onClose'>,
  { about }: ConversationRequest,
  { candidate, spoken, counting, body }: CountingCall,
  parts: InferenceParts,
): Promise<number | { failure: UpstreamFailure }> {
  const { upstreamId } = candidate.endpoint;
  const { provider, credential } = targetOf(candidate, parts.credentials.choose(candidate));
  const decodeFailure = provider.kind.decodeFailure ?? ((status, body) => spoken.decodeFailure(status, body));
  return new Promise((resolve) => {
    const receiver = new CountReceiver((status, text) => resolve(readCount(counting, decodeFailure, status, text)));
    const call = deliver(
      {
        provider,
        credential,
        format: spoken.id,
        model: upstreamId,
        stream: false,
        path: counting.path(upstreamId),
        operation: 'countTokens',
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

function readCount(
  counting: Counting,
  decodeFailure: SpokenFormat['decodeFailure'],
  status: number,
  text: string,
): number | { failure: UpstreamFailure } {
  if (status >= 400) return { failure: decodeFailure(status, text) };
  try {
    const count = counting.read(JSON.parse(text));
    if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
  } catch {
    // Reported below.
  }
  return { failure: { kind: 'malformed', status, message: 'the upstream response has no token count' } };
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
    if (this.#size < MAX_REPLY_BYTES) this.#chunks.push(chunk);
    this.#size += chunk.length;
  }

  end(): void {
    this.#done(this.#status, Buffer.concat(this.#chunks).toString('utf8'));
  }

  failed(): void {
    this.#done(502, '');
  }
}

/** Estimates from the length of every text. An image counts as one of usual size, however many bytes it has. */
function estimate({ messages: turns, system, tools }: Fields): number {
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
