/**
 * The position of tool results. Anthropic requires them first in the turn after the call. Gemini and OpenAI's chat
 * completions refuse any turn in between. A client of the responses format may send a message while its tool runs.
 */
import type { Message } from './conversation.ts';

/** Moves messages between an assistant's calls and their results to after the results. */
export function resultsFirst(messages: readonly Message[]): readonly Message[] {
  if (!messages.some((message, at) => message.role === 'tool' && isBetween(messages[at - 1]))) return messages;
  const ordered: Message[] = [];
  /** Where results of the last assistant message go; undefined when it has no calls. */
  let place: number | undefined;
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === 'assistant') {
      open = callsOf(message);
      place = ordered.push(message);
      continue;
    }
    if (message.role !== 'tool' || place === undefined || !answers(message, open)) {
      ordered.push(message);
      continue;
    }
    ordered.splice(place, 0, message);
    place += 1;
  }
  return ordered;
}

function isBetween(message: Message | undefined): boolean {
  return message !== undefined && message.role !== 'tool' && message.role !== 'assistant';
}

function callsOf({ parts }: Message): Set<string> {
  const ids = new Set<string>();
  for (const part of parts) if (part.type === 'toolCall') ids.add(part.id);
  return ids;
}

function answers({ parts }: Message, calls: ReadonlySet<string>): boolean {
  return parts.every((part) => part.type !== 'toolResult' || calls.has(part.callId));
}
