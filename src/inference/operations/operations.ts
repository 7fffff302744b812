/** The inference operations: turns HTTP exchanges into requests for `serve`, and serves `GET /generation`. */
import { type TSchema, Type } from 'typebox';
import type { Caller } from '../../access/index.ts';
import { GatewayError, invalidField } from '../../base/errors.ts';
import { generationId } from '../../base/ids.ts';
import type { JsonDocument } from '../../base/json.ts';
import { wireHeader } from '../../base/namespace.ts';
import { completion } from '../../formats/completion/index.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import { EmbeddingsReply, embedding } from '../../formats/embedding/index.ts';
import { ImageReply, image } from '../../formats/image/index.ts';
import { chat, messages, responses } from '../../formats/index.ts';
import { RerankReply, rerank } from '../../formats/rerank/index.ts';
import type { SingleForm } from '../../formats/single/index.ts';
import { ANY_KEY, INFERENCE } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import { ErrorSchema } from '../../http/openapi.ts';
import type { Exchange, Operation, OperationReply } from '../../http/operation.ts';
import { encodeGeneration, GenerationEnvelope } from '../../spend/index.ts';
import { regionOf } from '../admission/region.ts';
import { refuseDisabledTools } from '../admission/workspace-rules.ts';
import { debugTrail } from '../answer/debug.ts';
import { ANTHROPIC_REQUEST_ID } from '../answer/response-headers.ts';
import type { Sink } from '../answer/sink.ts';
import { cacheWishOf } from '../cache/wish.ts';
import type { InferenceParts } from '../parts.ts';
import type { InferenceRequest, RequestAbout } from '../request.ts';
import { serve, serveSingle } from '../serve.ts';
import { promptCachingWish } from '../turns/prompt-caching.ts';
import { companionOperations } from './completions.ts';
import {
  ChatEvents,
  ImageEvents,
  INFERENCE_ERRORS,
  MessagesErrorSchema,
  MessagesEvents,
  ResponsesEvents,
} from './event-schema.ts';
import { HttpSink } from './http-sink.ts';
import { ChatReply, MessagesReply, ResponsesReply } from './schema.ts';

export interface InferenceLimits {
  inferenceBodyBytes: number;
}

export function inferenceOperations(parts: InferenceParts, limits: InferenceLimits): Operation<Caller>[] {
  return [
    conversation(parts, limits, chat, {
      id: 'createChatCompletion',
      path: '/chat/completions',
      summary: 'Create a chat completion, streamed or not',
      reply: ChatReply,
      events: ChatEvents,
    }),
    conversation(parts, limits, messages, {
      id: 'createMessage',
      path: '/messages',
      summary: 'Create a message (Anthropic Messages format), streamed or not',
      reply: MessagesReply,
      events: MessagesEvents,
      errorSchema: MessagesErrorSchema,
    }),
    conversation(parts, limits, responses, {
      id: 'createResponse',
      path: '/responses',
      summary: 'Create a response (OpenAI Responses format), streamed or not; responses are not stored',
      reply: ResponsesReply,
      events: ResponsesEvents,
    }),
    single(parts, limits, embedding, {
      id: 'createEmbeddings',
      path: '/embeddings',
      summary: 'Create embeddings of texts, token ids or media',
      reply: EmbeddingsReply,
    }),
    single(parts, limits, rerank, {
      id: 'rerank',
      path: '/rerank',
      summary: 'Rank documents by their relevance to a query',
      reply: RerankReply,
      errors: [SILENT],
    }),
    single(parts, limits, image, {
      id: 'createImage',
      path: '/images',
      summary: 'Generate images from a prompt and reference images; streams where the provider does',
      reply: ImageReply,
      events: ImageEvents,
      errors: [SILENT],
    }),
    single(parts, limits, image, {
      id: 'createImageGeneration',
      path: '/images/generations',
      summary: 'Alias of `POST /images` for OpenAI clients',
      reply: ImageReply,
      events: ImageEvents,
      errors: [SILENT],
    }),
    ...companionOperations(parts, limits, {
      answer: (exchange, document, sink) => answer(exchange, chat, parts, document, sink),
      complete: (exchange) => answerSingle(exchange, completion, parts),
      asMessages: (exchange) => requestOf(exchange, messages, parts, exchange.document!, new HttpSink(exchange)),
    }),
    generation(parts),
  ];
}

interface ConversationOperation {
  id: string;
  path: string;
  summary: string;
  reply: typeof ChatReply | typeof MessagesReply | typeof ResponsesReply;
  events: NonNullable<OperationReply['events']>;
  errorSchema?: TSchema;
}

interface SingleOperation extends Pick<ConversationOperation, 'id' | 'path' | 'summary'> {
  reply: TSchema;
  events?: NonNullable<OperationReply['events']>;
  errors?: readonly number[];
}

const NAMED = { 'X-Generation-Id': 'The id of the generation, for `GET /generation`' };
/** Status for an upstream that timed out in an operation without streaming. */
const SILENT = 524;

/** `/messages` also accepts the key as `x-api-key`; see `access/`. */
function conversation(
  parts: InferenceParts,
  limits: InferenceLimits,
  format: ServedFormat,
  { id, path, summary, reply, events, errorSchema = ErrorSchema }: ConversationOperation,
): Operation<Caller> {
  return {
    id,
    method: 'POST',
    path,
    summary,
    tag: 'Inference',
    access: INFERENCE,
    anyText: true,
    body: { schema: format.schema, maxBytes: limits.inferenceBodyBytes },
    ...(format.id === 'messages' && { requestIdHeader: ANTHROPIC_REQUEST_ID }),
    replies: {
      200: {
        description: 'The reply, or an event stream when `stream` is true',
        schema: reply,
        events,
        headers: NAMED,
      },
    },
    errors: INFERENCE_ERRORS,
    errorSchema,
    handle: (exchange) => answer(exchange, format, parts),
    encodeError: (error, { caller }) =>
      format.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
  };
}

/** An operation with a single public format. */
function single<Request, Answer>(
  parts: InferenceParts,
  limits: InferenceLimits,
  form: SingleForm<Request, Answer>,
  { id, path, summary, reply, events, errors = [] }: SingleOperation,
): Operation<Caller> {
  return {
    id,
    method: 'POST',
    path,
    summary,
    tag: 'Inference',
    access: INFERENCE,
    anyText: true,
    body: { schema: form.schema, maxBytes: limits.inferenceBodyBytes },
    replies: { 200: { description: 'The reply', schema: reply, ...(events && { events }), headers: NAMED } },
    errors: [...INFERENCE_ERRORS, ...errors],
    handle: (exchange) => answerSingle(exchange, form, parts),
    encodeError: (error, { caller }) =>
      form.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
  };
}

function answerSingle<Request, Answer>(
  exchange: Exchange<Caller>,
  form: SingleForm<Request, Answer>,
  parts: InferenceParts,
): Promise<void> {
  const document = exchange.document!;
  form.check(document);
  return serveSingle(
    {
      id: generationId(exchange.startedAt),
      form,
      document,
      facts: form.facts(document),
      caller: exchange.caller,
      startedAt: exchange.startedAt,
      sink: new HttpSink(exchange),
      about: aboutOf(exchange, parts),
    },
    parts,
  );
}

function answer(
  exchange: Exchange<Caller>,
  format: ServedFormat,
  parts: InferenceParts,
  document = exchange.document!,
  sink: Sink = new HttpSink(exchange),
): Promise<void> {
  return serve(requestOf(exchange, format, parts, document, sink), parts);
}

function requestOf(
  exchange: Exchange<Caller>,
  format: ServedFormat,
  parts: InferenceParts,
  document: JsonDocument,
  sink: Sink,
): InferenceRequest {
  // Comes before the checks that refuse unsupported members, so that the error names the workspace's rule.
  refuseDisabledTools(exchange.caller, document);
  check(format, document);
  const facts = format.facts(factsView(document));
  const id = generationId(exchange.startedAt);
  return {
    id,
    format,
    document,
    facts,
    debug: debugTrail(facts, format, exchange.startedAt, parts.clock),
    caller: exchange.caller,
    startedAt: exchange.startedAt,
    // The generation's id is also the request id in errors.
    ...(format.id === 'messages' && { answerHeaders: { [ANTHROPIC_REQUEST_ID]: id } }),
    sink,
    about: aboutOf(exchange, parts),
  };
}

/**
 * Checks the cheap view first. Its texts are never shorter than the real ones, so only a failure needs the exact body.
 */
function check(format: ServedFormat, document: JsonDocument): void {
  try {
    format.check(document.structure);
  } catch {
    format.check(document.value);
  }
}

/** Members whose texts the gateway stores or acts on, so they are decoded exactly if the body has non-ASCII text. */
const OWN_TEXTS = [
  'model',
  'models',
  'fallbacks',
  'provider',
  'user',
  'safety_identifier',
  'session_id',
  'metadata',
] as const;

/** The cheap view of the body, with exact texts for the members that `facts` reads; messages stay undecoded. */
function factsView(document: JsonDocument): Record<string, unknown> {
  if (document.ascii) return document.structure;
  const view = { ...document.structure };
  for (const key of OWN_TEXTS) if (key in view) view[key] = document.member(key);
  return view;
}

function aboutOf({ headers, host, requestId }: Exchange<Caller>, parts: InferenceParts): RequestAbout {
  const metadata = wireHeader(headers, 'metadata') ?? wireHeader(headers, 'experimental-metadata');
  return {
    requestId,
    region: regionOf(host, parts.hosts()),
    userAgent: headers['user-agent'] ?? null,
    origin: headers['referer'] ?? '',
    title: wireHeader(headers, 'title') ?? first(headers['x-title']) ?? null,
    sessionId: sessionIdOf(first(headers['x-session-id'])),
    metadata: metadata !== undefined && metadata.toLowerCase() === 'enabled',
    cache: cacheWishOf(headers),
    promptCaching: promptCachingWish(headers),
    headers,
  };
}

/** Validates the header with the rule of the body's `session_id`. */
function sessionIdOf(header: string | undefined): string | null {
  if (header === undefined || header === '') return null;
  if (header.length > 256) throw invalidField('x-session-id', 'must have at most 256 characters');
  return header;
}

function first(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** `GET /generation`: an inference key sees its own generations, a management key those of its organization. */
function generation(parts: InferenceParts): Operation<Caller> {
  return {
    id: 'getGeneration',
    method: 'GET',
    path: '/generation',
    summary: 'Metadata and cost of one generation',
    tag: 'Generations',
    access: ANY_KEY,
    query: Type.Object({
      id: Type.String({ minLength: 1, description: 'The id of the generation, `gen-...` or `resp_...`' }),
    }),
    errors: [404],
    replies: ok('The generation', GenerationEnvelope),
    async handle(exchange) {
      const { caller } = exchange;
      const row = await parts.spend.findGeneration((exchange.query['id'] as string).replace(/^resp_/, 'gen-'), {
        organizationId: caller.organizationId,
        ...(caller.kind === 'inference' && { keyId: caller.keyId }),
      });
      if (row === undefined) throw new GatewayError('not_found', 'no such generation', { path: 'id' });
      exchange.reply(200, { data: encodeGeneration(row) });
    },
  };
}
