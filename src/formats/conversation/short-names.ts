/**
 * Names of tools that are longer than the spoken form takes. The messages form takes 128 characters, and agents fill
 * them (a name made of plugin, server and tool); elsewhere one such name refuses the whole request. Such a tool goes
 * out under a short name, the same every time, and answers have its own again.
 */
import { createHash } from 'node:crypto';
import type { Conversation, FormatId, Message, Part, Turn, TurnEvent } from './conversation.ts';
import type { TurnDecoder } from './format.ts';

const LONGEST: { readonly [form in FormatId]?: number } = { chat: 64, responses: 64, gemini: 64, converse: 64 };
const HASH_LENGTH = 8;

/** The tools' own names, by those that they go out under. */
export type OwnNames = ReadonlyMap<string, string>;

export interface ShortNamed {
  conversation: Conversation;
  /** Undefined where every name fits: the conversation is the same then. */
  own: OwnNames | undefined;
}

export function withShortNames(conversation: Conversation, form: FormatId): ShortNamed {
  const longest = LONGEST[form];
  if (longest === undefined) return { conversation, own: undefined };
  const own = new Map<string, string>();
  const short = (name: string): string => {
    if (name.length <= longest) return name;
    const hash = createHash('sha256').update(name, 'utf8').digest('hex').slice(0, HASH_LENGTH);
    const shortened = `${name.slice(0, longest - HASH_LENGTH - 1)}_${hash}`;
    own.set(shortened, name);
    return shortened;
  };
  const { tools, toolChoice, messages } = conversation;
  const renamed: Conversation = {
    ...conversation,
    messages: messages.map((message) => renamedCalls(message, short)),
    ...(tools && { tools: tools.map((tool) => ('name' in tool ? { ...tool, name: short(tool.name) } : tool)) }),
    ...(toolChoice?.mode === 'tool' && { toolChoice: { ...toolChoice, name: short(toolChoice.name) } }),
  };
  return own.size === 0 ? { conversation, own: undefined } : { conversation: renamed, own };
}

function renamedCalls(message: Message, short: (name: string) => string): Message {
  if (!message.parts.some((part) => part.type === 'toolCall')) return message;
  return { ...message, parts: message.parts.map((part) => withName(part, short)) };
}

function withName(part: Part, name: (given: string) => string): Part {
  return part.type === 'toolCall' ? { ...part, name: name(part.name) } : part;
}

export function namingDecoder(inner: TurnDecoder, own: OwnNames): TurnDecoder {
  const name = (events: TurnEvent[]): TurnEvent[] =>
    events.map((event) =>
      event.type === 'partStart' ? { ...event, part: withName(event.part, (given) => own.get(given) ?? given) } : event,
    );
  return {
    read: (event, data, value) => name(inner.read(event, data, value)),
    close: () => name(inner.close()),
  };
}

/** The same for a whole answer. */
export function namedTurn(turn: Turn, own: OwnNames): Turn {
  const choices = turn.choices.map((choice) => ({
    ...choice,
    parts: choice.parts.map((part) => withName(part, (given) => own.get(given) ?? given)),
  }));
  return { ...turn, choices };
}
