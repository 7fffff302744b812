/**
 * Checks the messages of an agent before the protocol's library sees them, because the library writes unexpected
 * messages to the standard error of this process, in the agent's own words.
 */
import type { AnyMessage, SessionNotification, SessionUpdate, Stream } from '@agentclientprotocol/sdk/unstable';

const UPDATE = 'session/update';
/** `readUpdate` reads updates under another name, because the library logs malformed ones under the name that it knows. */
export const CHECKED_UPDATE = 'gatehouse/update';

/** The stream without responses to unknown requests, and with updates under another name. */
export function onlyExpected({ readable, writable }: Stream): Stream {
  const waiting = new Set<unknown>();
  const sent = new TransformStream<AnyMessage, AnyMessage>({
    transform(message, controller) {
      if ('method' in message && 'id' in message) waiting.add(message.id);
      controller.enqueue(message);
    },
  });
  const received = new TransformStream<AnyMessage, AnyMessage>({
    transform(message, controller) {
      if ('method' in message && message.method === UPDATE && !('id' in message)) {
        controller.enqueue({ ...message, method: CHECKED_UPDATE });
      } else if ('method' in message || waiting.delete((message as { id?: unknown }).id)) controller.enqueue(message);
    },
  });
  // The connection reports its own end.
  sent.readable.pipeTo(writable).catch(() => {});
  return { readable: readable.pipeThrough(received), writable: sent.writable };
}

type Named = Pick<SessionNotification, 'sessionId' | 'update'>;

/** Null for an update that is malformed, which is ignored. */
export function readUpdate(params: unknown): Named | null {
  const { sessionId, update } = membersOf(params);
  const { content, toolCallId, kind, title } = membersOf(update);
  const text = membersOf(content)['text'];
  const isText = text === undefined || typeof text === 'string';
  const isCall = [toolCallId, kind, title].every((each) => each === undefined || each === null || isString(each));
  const isNamed = isString(sessionId) && isString(membersOf(update)['sessionUpdate']);
  return isNamed && isText && isCall ? { sessionId, update: update as SessionUpdate } : null;
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}
