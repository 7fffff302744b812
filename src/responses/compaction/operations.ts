/** `POST /responses/compact` and `POST /responses/input_tokens`. */
import { Type } from 'typebox';
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { type JsonDocument, parseJson, readDocument, stringifyJson } from '../../base/json.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../formats/conversation/fields.ts';
import { responses } from '../../formats/index.ts';
import { INFERENCE } from '../../http/access-rule.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import {
  acceptExchange,
  countTokens,
  HttpSink,
  INFERENCE_ERRORS,
  type InferenceLimits,
  serve,
  withPluginSettings,
} from '../../inference/index.ts';
import { type Body, textOf as textOfBody } from '../body-text.ts';
import { checkOwn, itemCount, NOTHING_WANTED, type ResponseParts, statelessOf, stateOf } from '../create.ts';
import { joined } from '../history.ts';
import { withIds } from '../item.ts';
import { wantedOf } from '../wanted.ts';
import { compactionItem, summaryInput, userMessages } from './summary.ts';

const open = { additionalProperties: true };

const InputTokens = Type.Object(
  {
    object: Type.Literal('response.input_tokens'),
    input_tokens: Type.Integer({ minimum: 0 }),
    estimated: Type.Optional(
      Type.Literal(true, { description: 'The provider cannot count tokens; estimated from the length' }),
    ),
  },
  { $id: 'ResponseInputTokens' },
);

const Compacted = Type.Object(
  {
    id: Type.String({ description: '`resp_...`' }),
    object: Type.Literal('response.compaction'),
    created_at: Type.Integer({ description: 'Unix seconds' }),
    output: Type.Array(Type.Object({ type: Type.String(), id: Type.String() }, open), {
      description: 'The messages of the user, then one item of the type `compaction`: the input of the next request',
    }),
    usage: Type.Object({}, open),
  },
  { $id: 'CompactedResponse' },
);

/** Looks into `parts` only when a request comes. @param limits of bodies */
export function compactionOperations(parts: ResponseParts, limits: InferenceLimits): Operation<Caller>[] {
  const common = {
    method: 'POST',
    tag: 'Inference',
    access: INFERENCE,
    anyText: true,
    anyQuery: true,
    // Members about the response itself have no effect.
    body: {
      schema: responses.schema,
      described: withPluginSettings(responses.schema),
      maxBytes: limits.inferenceBodyBytes,
    },
    errors: INFERENCE_ERRORS,
    encodeError: (error, { caller }) =>
      responses.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
  } satisfies Partial<Operation<Caller>>;
  return [
    {
      ...common,
      id: 'compactResponse',
      path: '/responses/compact',
      summary: 'Replace a conversation by the messages of its user and a summary that the model writes',
      replies: { 200: { description: 'The compacted conversation', schema: Compacted } },
      handle: (exchange) => compact(exchange, parts),
    },
    {
      ...common,
      id: 'countResponseTokens',
      path: '/responses/input_tokens',
      summary: 'Count the input tokens of a request, by its provider or as an estimate; free of charge',
      replies: { 200: { description: 'The count', schema: InputTokens } },
      async handle(exchange) {
        const document = await wholeOf(exchange, parts);
        const { input_tokens, estimated } = await countTokens(
          acceptExchange(exchange, responses, parts.inference, document),
          exchange,
          parts.inference,
        );
        const object = 'response.input_tokens';
        exchange.reply(200, { object, input_tokens, ...(estimated && { estimated }) });
      },
    },
  ];
}

/** The request with everything that it continues. */
async function wholeOf(exchange: Exchange<Caller>, parts: ResponseParts): Promise<JsonDocument> {
  const wanted = wantedOf(exchange.document!) ?? NOTHING_WANTED;
  const own = await statelessOf(exchange, parts);
  checkOwn(own, wanted);
  const { history } = await stateOf(exchange.caller, wanted, itemCount(own), parts);
  const whole = history ? joined(own, history, parts.limits.inferenceBodyBytes) : own;
  if (itemCount(own) === 0) responses.check(whole.value, true);
  return whole;
}

async function compact(exchange: Exchange<Caller>, parts: ResponseParts): Promise<void> {
  const { exact } = await wholeOf(exchange, parts);
  const { input } = exact;
  const items = typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : listOf(input);
  const body = { ...summaryRequest(exact), input: summaryInput(items) };
  const document = readDocument(Buffer.from(stringifyJson(body)));
  const accepted = acceptExchange(exchange, responses, parts.inference, document);
  // As for every request with state.
  const request = { ...accepted, about: { ...accepted.about, cache: undefined } };
  await serve(request, new CompactionSink(exchange, userMessages(items)), parts.inference);
}

/** Members that say which model writes the summary and on whose account. */
const KEPT = [
  ...['model', 'models', 'preset', 'provider', 'route', 'instructions', 'reasoning', 'service_tier'],
  ...['prompt_cache_key', 'prompt_cache_options', 'user', 'safety_identifier', 'session_id', 'metadata', 'trace'],
];

function summaryRequest(given: Fields): Fields {
  const kept = KEPT.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]] as const]));
  // A preset must not add tools or a format.
  return { ...Object.fromEntries(kept), tools: [], text: { format: { type: 'text' } } };
}

/** Makes the compacted conversation of the model's response, which is never a stream. */
class CompactionSink extends HttpSink {
  readonly #kept: readonly Fields[];

  constructor(exchange: Exchange<Caller>, kept: readonly Fields[]) {
    super(exchange);
    this.#kept = kept;
  }

  override reply(status: number, headers: Record<string, string>, body: Body, ...[encoding]: Encoding): void {
    if (status === 200) this.#told(headers, fieldsOf(parseJson(textOfBody(body, encoding))));
    else super.reply(status, headers, body, encoding);
  }

  #told(headers: Record<string, string>, response: Fields): void {
    const summary = response['status'] === 'completed' ? summaryIn(response) : '';
    if (summary === '') {
      this.#refuse(headers);
      return;
    }
    const seed = textOf(response['id']).replace(/^resp_/, '');
    const { id, created_at, usage } = response;
    const output = [...withIds(this.#kept, `${seed}_`), compactionItem(`cmp_${seed}`, summary)];
    super.reply(200, headers, stringifyJson({ id, object: 'response.compaction', created_at, output, usage }));
  }

  #refuse(headers: Record<string, string>): void {
    const problem = 'the model has written no complete summary; compact with another model, or less input';
    const error = new GatewayError('server', problem, { status: 502 });
    super.reply(502, headers, stringifyJson(responses.encodeFailure(error, { generationId: null })));
  }
}

type Encoding = [encoding?: Parameters<HttpSink['reply']>[3]];

function summaryIn({ output }: Fields): string {
  const parts = listOf(output).flatMap((item) => listOf(fieldsOf(item)['content']));
  return parts.map((part) => (fieldsOf(part)['type'] === 'output_text' ? textOf(fieldsOf(part)['text']) : '')).join('');
}
