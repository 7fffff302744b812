/**
 * Rewrites the history without calls, for a request that forbids them. The service has no tool choice `none` and
 * rejects a history of calls without declared tools, but with declared tools it may call. So earlier calls and results
 * become text.
 */
import type { Conversation, Message, Part, ToolResultPart } from '../conversation/conversation.ts';

export function withoutCalls(conversation: Conversation): Conversation {
  const names = new Map<string, string>();
  const messages = conversation.messages.map((message): Message => {
    const parts = message.parts.flatMap((part): Part[] => {
      if (part.type === 'toolCall') {
        names.set(part.id, part.name);
        return [{ type: 'text', text: `[Called the tool ${part.name} with ${part.arguments || '{}'}]` }];
      }
      return part.type === 'toolResult' ? toldResult(part, names.get(part.callId)) : [part];
    });
    return { ...message, role: message.role === 'tool' ? 'user' : message.role, parts };
  });
  return { ...conversation, messages };
}

/** The result's parts after a line that names the tool. A cache mark on the result moves to the last part. */
function toldResult({ parts, isError, cache }: ToolResultPart, name: string | undefined): Part[] {
  const whose = name === undefined ? 'a tool' : `the tool ${name}`;
  const said = parts.length === 0 ? ': nothing' : '';
  const told: Part[] = [{ type: 'text', text: `[${isError ? 'Error' : 'Result'} of ${whose}${said}]` }, ...parts];
  if (cache !== undefined) told[told.length - 1] = { ...told.at(-1)!, cache };
  return told;
}
