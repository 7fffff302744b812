/**
 * Guardrail filters on server tools. The model writes the arguments of a call, so filters of answers apply to them. The
 * result goes to the model, so filters of requests apply to it.
 */
import { parseJson, readDocument, stringifyJson } from '../../base/json.ts';
import { textOf } from '../../formats/conversation/fields.ts';
import type { VisitTexts } from '../../formats/conversation/texts.ts';
import { BlockedByFilter, type Hit, policyOf } from '../../guardrails/index.ts';
import { replaceStrings } from '../answer/replace-strings.ts';
import type { ToolsRunning } from '../turns/gateway-tools.ts';

/**
 * The arguments of a call as the tool may see them. Their matches are counted where the call is shown to the client.
 * @throws GatewayError 403 when a filter blocks the answer
 */
export function screenedArguments(text: string, { request, parts }: ToolsRunning): string {
  const { answerFilters } = policyOf(request.caller).compiled;
  if (answerFilters === undefined) return text;
  const screening = answerFilters.screening(parts.clock);
  const clean = (each: string) => screening.whole(each);
  return screening.timed(() => {
    const screened = screenedJson(text, clean);
    screening.refuse();
    return screened;
  });
}

function screenedJson(text: string, clean: (text: string) => string): string {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return clean(text);
  }
  return stringifyJson(replaceStrings(value, clean, true));
}

/** A result as the model may see it; undefined when a filter blocks it. */
export function screenedResult(
  result: string,
  { request, parts }: ToolsRunning,
): { text: string | undefined; hits: readonly Hit[] } {
  const { filters } = policyOf(request.caller).compiled;
  if (filters === undefined) return { text: result, hits: [] };
  try {
    const { document, hits } = filters.screen(documentOf(result), visit, parts.clock);
    return { text: textOf(document.value['content']), hits };
  } catch (error) {
    if (error instanceof BlockedByFilter) return { text: undefined, hits: error.hits };
    throw error;
  }
}

function documentOf(content: string) {
  return readDocument(Buffer.from(JSON.stringify({ content })));
}

/** The user did not write it. */
const visit: VisitTexts = (body, visitor) => {
  body['content'] = visitor.text(textOf(body['content']), false);
};
