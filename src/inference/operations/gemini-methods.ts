/** What Google's clients call on a model besides generating: counting tokens and embedding. */
import type { Caller } from '../../access/index.ts';
import { invalidField } from '../../base/errors.ts';
import { type JsonDocument, readDocument, stringifyJson } from '../../base/json.ts';
import { withMembers } from '../../base/json-members.ts';
import { type Fields, isFields } from '../../formats/conversation/fields.ts';
import { embedding, embeddingForGemini, embeddingsRequestOf } from '../../formats/embedding/index.ts';
import { gemini } from '../../formats/index.ts';
import type { Exchange } from '../../http/operation.ts';
import { documentCheck } from '../../http/validate.ts';
import type { InferenceParts } from '../parts.ts';
import { serve } from '../serve.ts';
import { acceptExchange } from './accept-exchange.ts';
import { countTokens } from './count-tokens.ts';
import { HttpSink } from './http-sink.ts';
import type { MoreMethods } from './in-path.ts';

export function geminiMethods(parts: InferenceParts): MoreMethods {
  return {
    countTokens: (exchange, model) => count(exchange, model, parts),
    embedContent: (exchange, model) => embed(exchange, model, parts, false),
    batchEmbedContents: (exchange, model) => embed(exchange, model, parts, true),
  };
}

/** Compiled with the first request. */
let checkSchema: ReturnType<typeof documentCheck> | undefined;

async function count(exchange: Exchange<Caller>, model: string, parts: InferenceParts): Promise<void> {
  const document = withMembers(countedIn(exchange.document!), { model, stream: false });
  checkSchema ??= documentCheck(gemini.schema);
  checkSchema(document);
  const accepted = acceptExchange(exchange, gemini, parts, document);
  const { input_tokens, estimated } = await countTokens(accepted, exchange, parts);
  exchange.reply(200, { totalTokens: input_tokens, ...(estimated && { estimated }) });
}

const WHOLE = ['generateContentRequest', 'generate_content_request'];

/** The whole request if the body has one, otherwise the body, which has its contents. @throws GatewayError 400 */
function countedIn(document: JsonDocument): JsonDocument {
  const { exact } = document;
  const name = WHOLE.find((each) => (exact[each] ?? null) !== null);
  if (name === undefined) return document;
  const other = Object.keys(exact).find((each) => each !== name && exact[each] !== null);
  if (other !== undefined) throw invalidField(other, `cannot be used together with ${name}`);
  const whole = exact[name];
  if (!isFields(whole)) throw invalidField(name, 'must be an object');
  return readDocument(Buffer.from(stringifyJson(whole)));
}

function embed(exchange: Exchange<Caller>, model: string, parts: InferenceParts, batch: boolean): Promise<void> {
  const body = embeddingsRequestOf(exchange.document!.exact as Fields, model, batch);
  const document = readDocument(Buffer.from(stringifyJson(body)));
  const request = acceptExchange(exchange, embeddingForGemini(embedding, batch), parts, document);
  return serve(request, new HttpSink(exchange), parts);
}
