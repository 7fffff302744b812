/** Calls of tools that a responses service has run itself, for clients of other formats and from upstreams of those. */
import type { OpaquePart, Part } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import { type EndedCall, type ServedCall, shownId } from '../conversation/served-call.ts';

/** A part of an answer, with what its item says. */
export function noted(part: Part): Part {
  const served = part.type === 'opaque' ? servedOf(fieldsOf(part.value)) : undefined;
  return served === undefined ? part : ({ ...part, served } as OpaquePart);
}

function servedOf({ type, id, action, status, code, outputs }: Fields): ServedCall | undefined {
  const failed = status === 'failed' || status === 'incomplete';
  if (type === 'code_interpreter_call') {
    const text = listOf(outputs).map((output) => textOf(fieldsOf(output)['logs']));
    return { id: textOf(id), tool: 'code_execution', input: textOf(code), result: { failed, text: text.join('') } };
  }
  if (type !== 'web_search_call') return undefined;
  const { type: kind = 'search', query, url, sources } = fieldsOf(action);
  if (kind !== 'search') return { id: textOf(id), tool: 'web_fetch', input: textOf(url), result: { failed } };
  const pages = listOf(sources).flatMap((source) => {
    const { url: page } = fieldsOf(source);
    return typeof page === 'string' ? [{ url: page, title: '' }] : [];
  });
  return { id: textOf(id), tool: 'web_search', input: textOf(query), result: { failed, pages } };
}

/** Searches that are billed: the service opens pages that it has found free of charge. */
export function searchesIn(items: readonly unknown[]): number {
  return items.filter((item) => {
    const { type, action, status } = fieldsOf(item);
    return type === 'web_search_call' && status !== 'failed' && (fieldsOf(action)['type'] ?? 'search') === 'search';
  }).length;
}

/** Images that the service has made. */
export function imagesIn(items: readonly unknown[]): number {
  return items.filter((item) => {
    const { type, result } = fieldsOf(item);
    return type === 'image_generation_call' && typeof result === 'string' && result !== '';
  }).length;
}

/** The item that shows a call of another format's upstream. */
export function servedItem(call: EndedCall): Fields {
  const { tool, input, result } = call;
  const status = result.failed ? 'failed' : 'completed';
  if (tool === 'code_execution') {
    const outputs = result.text ? [{ type: 'logs', logs: result.text }] : [];
    return { type: 'code_interpreter_call', id: shownId('ci', call), status, code: input, container_id: '', outputs };
  }
  const action =
    tool === 'web_fetch'
      ? { type: 'open_page', url: input }
      : { type: 'search', query: input, sources: (result.pages ?? []).map(({ url }) => ({ type: 'url', url })) };
  return { type: 'web_search_call', id: shownId('ws', call), status, action };
}
