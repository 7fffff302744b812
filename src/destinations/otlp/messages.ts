/** Logged contents as messages of the GenAI conventions: `{role, parts}`. */

interface Part {
  type: string;
  [member: string]: unknown;
}

interface Message {
  role: string;
  parts: Part[];
  finish_reason?: string;
}

/** @param input JSON of `{messages}` or `{prompt}` */
export function inputMessages(input: string): Message[] {
  const { messages, prompt } = JSON.parse(input) as { messages?: unknown; prompt?: unknown };
  if (!Array.isArray(messages)) return [{ role: 'user', parts: partsOf(prompt ?? messages) }];
  return messages.map((message: unknown) => {
    if (!isObject(message)) return { role: 'user', parts: partsOf(message) };
    const { role, content, tool_calls: calls } = message;
    return {
      role: typeof role === 'string' ? role : 'user',
      parts: [
        ...(content === undefined && typeof message['type'] === 'string' ? [message as Part] : partsOf(content)),
        ...(Array.isArray(calls) ? calls.map(callPart) : []),
      ],
    };
  });
}

/** @param output JSON of `{completion, reasoning, tool_calls}` */
export function outputMessages(output: string, finishReason: string | null): Message[] {
  const { completion, reasoning, tool_calls: calls } = JSON.parse(output) as Record<string, unknown>;
  const parts: Part[] = [];
  if (typeof reasoning === 'string') parts.push({ type: 'reasoning', content: reasoning });
  if (typeof completion === 'string') parts.push({ type: 'text', content: completion });
  if (Array.isArray(calls)) parts.push(...calls.map(callPart));
  return [{ role: 'assistant', parts, ...(finishReason !== null && { finish_reason: finishReason }) }];
}

/** Messages as most tools show them: a role and a text. */
export function plainMessages(messages: readonly Message[]): { role: string; content: string }[] {
  return messages.map(({ role, parts }) => ({ role, content: parts.map(shown).join('\n') }));
}

function shown(part: Part): string {
  return typeof part['content'] === 'string' ? part['content'] : JSON.stringify(part);
}

function partsOf(content: unknown): Part[] {
  if (content === null || content === undefined) return [];
  if (typeof content === 'string') return [{ type: 'text', content }];
  if (!Array.isArray(content)) return [{ type: 'text', content: JSON.stringify(content) }];
  return content.map((part: unknown) => {
    if (typeof part === 'string') return { type: 'text', content: part };
    if (!isObject(part)) return { type: 'text', content: JSON.stringify(part) };
    const { text, type } = part;
    return typeof text === 'string' ? { type: 'text', content: text } : { ...part, type: String(type ?? 'unknown') };
  });
}

/** A call in the chat format, or as the content log has it. */
function callPart(call: unknown): Part {
  if (!isObject(call)) return { type: 'tool_call', arguments: call };
  const named = isObject(call['function']) ? call['function'] : call;
  return { type: 'tool_call', id: call['id'], name: named['name'], arguments: named['arguments'] };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
