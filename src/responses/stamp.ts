/** The stamp of a response that no endpoint has answered yet. */
import type { ServedFormat, Stamp } from '../formats/conversation/format.ts';
import type { AcceptedRequest } from '../inference/index.ts';

export function stampOf({ id, format, document, facts, startedAt }: AcceptedRequest<ServedFormat>): Stamp {
  const created = Math.floor(startedAt / 1000);
  const echo = () => format.echo!(document);
  return { id, model: facts.model ?? '', provider: '', created, usage: 'none', echo };
}
