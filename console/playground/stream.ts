/** Runs one turn: sends the request, reads its events, and reports the answer as it grows. */
import { ApiError, request } from '../api.ts';
import { eventsOf } from '../events.ts';
import { hasEnded } from '../query.ts';
import { checkSession } from '../session.ts';
import { type Answer, EMPTY_ANSWER, type FormatName } from './conversation.ts';
import { FORMATS, failureOf, routeOf } from './formats.ts';

/** @returns whether the gateway accepted the request */
export async function runTurn(
  format: FormatName,
  body: Record<string, unknown>,
  signal: AbortSignal,
  show: (answer: Answer) => void,
): Promise<boolean> {
  const startedAt = performance.now();
  let answer = EMPTY_ANSWER;
  let waiting = false;
  let isAccepted = false;
  const update = (changes: Partial<Answer>) => {
    answer = { ...answer, ...changes };
    // At most once a frame: a fast model sends thousands of events a second.
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      show(answer);
    });
  };
  try {
    const { path, add } = FORMATS[format];
    const headers = { 'X-Svc-Metadata': 'enabled' };
    const response = await request('POST', `../api/v1${path}`, { body, signal, headers });
    isAccepted = true;
    update({ id: response.headers.get('x-generation-id') ?? undefined });
    for await (const event of eventsOf(response)) {
      const next = add(answer, event);
      const route = routeOf(event);
      const error = failureOf(event);
      const isFirst = answer.firstMs === undefined && hasContent(next);
      update({
        ...next,
        ...(isFirst && { firstMs: performance.now() - startedAt }),
        ...(route && { route }),
        ...(error !== undefined && { error }),
      });
    }
    update({ state: 'done', totalMs: performance.now() - startedAt });
  } catch (error) {
    const stopped = (error as Error).name === 'AbortError';
    update({
      state: stopped ? 'stopped' : 'done',
      totalMs: performance.now() - startedAt,
      ...(!stopped && { error: (error as Error).message }),
      ...(error instanceof ApiError && { id: error.generationId }),
    });
    if (hasEnded(error)) checkSession();
  }
  return isAccepted;
}

function hasContent({ text, reasoning, calls, images }: Answer): boolean {
  return text !== '' || reasoning !== '' || calls.length > 0 || images.length > 0;
}
