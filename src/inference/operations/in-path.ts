/**
 * The operations of a format whose clients name the model in the path (`PathWords`): the model and what the method says
 * become members of the body, and the request then continues like one of any other format.
 */
import { Type } from 'typebox';
import type { Caller } from '../../access/index.ts';
import type { TextEncoding } from '../../base/byte-text.ts';
import { GatewayError, invalidField } from '../../base/errors.ts';
import { withMembers } from '../../base/json-members.ts';
import type { PathWords, ServedFormat } from '../../formats/conversation/format.ts';
import { INFERENCE } from '../../http/access-rule.ts';
import { ErrorSchema } from '../../http/openapi.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import { documentCheck } from '../../http/validate.ts';
import type { InferenceParts } from '../parts.ts';
import { withPluginSettings } from '../plugins/index.ts';
import { serve } from '../serve.ts';
import { acceptExchange } from './accept-exchange.ts';
import { INFERENCE_ERRORS } from './event-schema.ts';
import { HttpSink } from './http-sink.ts';

/** What else clients of a format call on a model, by method. */
export type MoreMethods = Readonly<Record<string, (exchange: Exchange<Caller>, model: string) => Promise<void>>>;

interface PathFormat {
  format: ServedFormat;
  words: PathWords;
  more: MoreMethods;
}

/** One operation for models without a slash in their name and one for all others, below every root. */
export function operationsInPath(
  parts: InferenceParts,
  bodyBytes: number,
  { format, words, more }: PathFormat,
): Operation<Caller>[] {
  const { id, path, summary, reply, events, errorSchema = ErrorSchema } = format.operation;
  const answer = answerer(parts, { format, words, more });
  const common = {
    method: 'POST',
    tag: 'Inference',
    access: INFERENCE,
    anyText: true,
    anyQuery: true,
    keyInQuery: true,
    query: Type.Object({
      alt: Type.Optional(
        Type.Enum([words.eventsAs, 'json'], { description: 'Streams are events, or one list in JSON (default)' }),
      ),
      key: Type.Optional(Type.String({ description: 'The key, instead of a header' })),
    }),
    body: {
      // Which schema holds depends on the method.
      schema: Type.Object({}, { additionalProperties: true }),
      described: withPluginSettings(format.schema),
      maxBytes: bodyBytes,
    },
    replies: { 200: { description: 'The reply, streamed if the method says so', schema: reply, events } },
    errors: [...INFERENCE_ERRORS, 409],
    errorSchema,
    encodeError: (error: GatewayError, { caller }: { caller: Caller | undefined }) =>
      format.encodeFailure(error, { generationId: null, ...(caller && { userId: caller.organizationId }) }),
  } as const;
  const methods = [...Object.keys(words.methods), ...Object.keys(more)].map((method) => `\`:${method}\``).join(', ');
  return [undefined, ...words.roots].flatMap((root): Operation<Caller>[] => {
    const at = { ...common, ...(root && { root: true }) };
    const [above, suffix] = [root?.path ?? '', root?.suffix ?? ''];
    return [
      {
        ...at,
        id: `${id}${suffix}`,
        path: `${above}${path}/{model}`,
        summary: `${summary}; the path ends with one of ${methods}`,
        params: Type.Object({ model: Type.String() }),
        handle: (exchange) => answer(exchange, exchange.params['model']!),
      },
      {
        ...at,
        id: `${id}OfAuthor${suffix}`,
        path: `${above}${path}/{author}/{model}`,
        summary: 'The same for a model whose name has a slash',
        params: Type.Object({ author: Type.String(), model: Type.String() }),
        handle: (exchange) => answer(exchange, `${exchange.params['author']}/${exchange.params['model']}`),
      },
    ];
  });
}

/** @returns answers the exchange; its second argument is `<model>:<method>` */
function answerer(parts: InferenceParts, { format, words, more }: PathFormat) {
  let checkSchema: ReturnType<typeof documentCheck> | undefined;
  return (exchange: Exchange<Caller>, target: string): Promise<void> => {
    const colon = target.lastIndexOf(':');
    const method = target.slice(colon + 1);
    const model = target.slice(0, colon);
    const members = Object.hasOwn(words.methods, method) ? words.methods[method] : undefined;
    if (exchange.query['alt'] === words.eventsAs && members?.['stream'] !== true && colon > 0) {
      throw invalidField('alt', `must not be ${words.eventsAs} for a method that does not stream`);
    }
    const other = Object.hasOwn(more, method) ? more[method] : undefined;
    if (other !== undefined && colon > 0) return other(exchange, model);
    if (colon < 1 || members === undefined) {
      const known = [...Object.keys(words.methods), ...Object.keys(more)].join(', ');
      const instead = Object.hasOwn(words.unserved, method) ? `${method} is not served: ${words.unserved[method]}` : '';
      throw new GatewayError('not_found', instead || `the method of a model must be one of ${known}`);
    }
    const document = withMembers(exchange.document!, { ...members, model });
    checkSchema ??= documentCheck(format.schema);
    checkSchema(document);
    const request = acceptExchange(exchange, format, parts, document);
    const listed = request.facts.stream && exchange.query['alt'] !== words.eventsAs;
    return serve(request, listed ? new ListSink(exchange) : new HttpSink(exchange), parts);
  };
}

/** A stream as one list of JSON; comments are left out. */
class ListSink extends HttpSink {
  #begun = false;

  override open(headers: Record<string, string>): void {
    super.open({ ...headers, 'content-type': 'application/json; charset=utf-8' });
  }

  /** @param text whole events */
  override write(text: string, encoding?: TextEncoding): boolean {
    let list = '';
    for (const event of text.split('\n\n')) {
      if (!event.startsWith(DATA)) continue;
      list += (this.#begun ? ',\r\n' : '[') + event.slice(DATA.length);
      this.#begun = true;
    }
    return list === '' || super.write(list, encoding);
  }

  override end(): void {
    super.write(this.#begun ? ']' : '[]');
    super.end();
  }
}

const DATA = 'data: ';
