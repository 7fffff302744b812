/** The inference operations: turns HTTP exchanges into requests for `serve`, and serves `GET /generation`. */
import { type TSchema, Type } from 'typebox';
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import type { DirectFormat } from '../../formats/direct/index.ts';
import { EmbeddingsReply, embedding } from '../../formats/embedding/index.ts';
import {
  editOfForm,
  ImageReply,
  image,
  imageEdit,
  imageFormSchema,
  variationOfForm,
} from '../../formats/image/index.ts';
import { gemini, SERVED_FORMATS } from '../../formats/index.ts';
import { ModerationReply, moderation } from '../../formats/moderation/index.ts';
import { RerankReply, rerank } from '../../formats/rerank/index.ts';
import { speech } from '../../formats/speech/index.ts';
import {
  formSchema,
  TranscriptionReply,
  transcription,
  transcriptionOfForm,
  translation,
} from '../../formats/transcription/index.ts';
import { ANY_KEY, INFERENCE } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import { ErrorSchema } from '../../http/openapi.ts';
import type { Exchange, MultipartRule, Operation, OperationReply } from '../../http/operation.ts';
import { encodeGeneration, GenerationEnvelope } from '../../spend/index.ts';
import type { InferenceParts } from '../parts.ts';
import { withPluginSettings } from '../plugins/index.ts';
import type { AnyFormat } from '../request.ts';
import { serve } from '../serve.ts';
import { acceptExchange } from './accept-exchange.ts';
import { companionOperations } from './completions.ts';
import { decisionOperations } from './decisions.ts';
import { ImageEvents, INFERENCE_ERRORS, TranscriptionEvents } from './event-schema.ts';
import { geminiMethods } from './gemini-methods.ts';
import { HttpSink } from './http-sink.ts';
import { operationsInPath } from './in-path.ts';

export interface InferenceLimits {
  inferenceBodyBytes: number;
}

/** Answers requests that need more than the pipeline; undefined for those that do not. */
type Special = (exchange: Exchange<Caller>) => Promise<void> | undefined;

/**
 * @param formats those that conversations can be held in
 * @param special by the id of a format
 */
export function inferenceOperations(
  parts: InferenceParts,
  limits: InferenceLimits,
  formats: readonly ServedFormat[] = SERVED_FORMATS,
  special: Readonly<Partial<Record<ServedFormat['id'], Special>>> = {},
): Operation<Caller>[] {
  return [
    ...formats.flatMap((format) => {
      const { inPath: words } = format.operation;
      if (words === undefined) return [conversation(parts, limits, format, special[format.id])];
      const more = format.id === gemini.id ? geminiMethods(parts) : {};
      return operationsInPath(parts, limits.inferenceBodyBytes, { format, words, more });
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
    ...[
      { id: 'editImage', path: '/images/edits', summary: 'Edit images by a prompt', toBody: editOfForm },
      { id: 'varyImage', path: '/images/variations', summary: 'Make variations of an image', toBody: variationOfForm },
    ].map(({ toBody, ...about }) =>
      single(parts, limits, imageEdit, {
        ...about,
        reply: ImageReply,
        events: ImageEvents,
        multipart: { schema: imageFormSchema, toBody },
        errors: [SILENT],
      }),
    ),
    single(parts, limits, moderation, {
      id: 'createModeration',
      path: '/moderations',
      summary: 'Classify texts and images by a moderation model',
      reply: ModerationReply,
    }),
    single(parts, limits, speech, {
      id: 'createSpeech',
      path: '/audio/speech',
      summary: 'Turn text into speech; the audio is streamed as it is made',
      reply: Type.Unsafe({ type: 'string', format: 'binary' }),
      contentType: 'audio/*',
      errors: [SILENT],
    }),
    ...[
      { form: transcription, id: 'createTranscription', path: '/audio/transcriptions', summary: 'Transcribe speech' },
      {
        form: translation,
        id: 'createTranslation',
        path: '/audio/translations',
        summary: 'Translate speech into English text',
      },
    ].map(({ form, ...about }) =>
      single(parts, limits, form, {
        ...about,
        reply: TranscriptionReply,
        texts: ['text/plain'],
        events: TranscriptionEvents,
        multipart: { schema: formSchema, toBody: transcriptionOfForm },
        errors: [SILENT],
      }),
    ),
    ...companionOperations(parts, limits),
    ...decisionOperations(parts, limits.inferenceBodyBytes),
    generation(parts),
  ];
}

interface DirectOperation {
  id: string;
  path: string;
  summary: string;
  reply: TSchema;
  /** Default JSON. */
  contentType?: string;
  texts?: readonly string[];
  multipart?: MultipartRule;
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
  special: Special | undefined,
): Operation<Caller> {
  const { id, path, summary, reply, events, errorSchema = ErrorSchema, requestIdHeader } = format.operation;
  return {
    id,
    method: 'POST',
    path,
    summary,
    tag: 'Inference',
    access: INFERENCE,
    anyText: true,
    anyQuery: true,
    body: {
      schema: format.schema,
      described: withPluginSettings(format.schema),
      maxBytes: limits.inferenceBodyBytes,
    },
    ...(requestIdHeader && { requestIdHeader }),
    replies: {
      200: {
        description: 'The reply, or an event stream when `stream` is true',
        schema: reply,
        events,
        headers: NAMED,
      },
    },
    // 409: the container that a tool names has another network.
    errors: [...INFERENCE_ERRORS, 409],
    errorSchema,
    handle: (exchange) => special?.(exchange) ?? answer(exchange, format, parts, requestIdHeader),
    encodeError: (error, { caller }) =>
      format.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
  };
}

/** An operation with a single public format. */
function single(
  parts: InferenceParts,
  limits: InferenceLimits,
  form: DirectFormat<unknown, unknown>,
  { id, path, summary, reply, contentType, texts, multipart, events, errors = [] }: DirectOperation,
): Operation<Caller> {
  return {
    id,
    method: 'POST',
    path,
    summary,
    tag: 'Inference',
    access: INFERENCE,
    anyText: true,
    anyQuery: true,
    body: { schema: form.schema, maxBytes: limits.inferenceBodyBytes, ...(multipart && { multipart }) },
    replies: {
      200: {
        description: 'The reply',
        schema: reply,
        ...(contentType && { contentType }),
        ...(texts && { texts }),
        ...(events && { events }),
        headers: NAMED,
      },
    },
    errors: [...INFERENCE_ERRORS, ...errors],
    handle: (exchange) => answer(exchange, form, parts),
    encodeError: (error, { caller }) =>
      form.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
  };
}

function answer(
  exchange: Exchange<Caller>,
  format: AnyFormat,
  parts: InferenceParts,
  idHeader?: string,
): Promise<void> {
  return serve(acceptExchange(exchange, format, parts), new HttpSink(exchange, idHeader), parts);
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
