/**
 * Shortens tool names longer than the upstream format allows. The messages format allows 128 characters, and agents use
 * them (plugin, server and tool in one name); in other formats one such name fails the whole request. Shortened names
 * are deterministic, and answers get the original names back.
 */

import { createHash } from 'node:crypto';
import type { Conversation, Message, Part, Tool, ToolChoice, Turn, TurnEvent } from '../conversation/conversation.ts';
import { fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import type { SpokenFormat, TurnDecoder } from '../conversation/format.ts';
import type { TurnAdapter } from './adapter.ts';

const HASH_LENGTH = 8;

/** The original tool names, by shortened name. */
type OwnNames = ReadonlyMap<string, string>;

interface ShortNamed {
  conversation: Conversation;
  /** Undefined when every name fits; the conversation is then unchanged. */
  own: OwnNames | undefined;
}

/** Restores the names in the answer. */
export const shortNames: TurnAdapter = (conversation, { spoken }) => {
  const { conversation: shortened, own } = withShortNames(conversation, spoken.longestToolName);
  if (own === undefined) return { conversation };
  const restoring = {
    decoder: (inner: TurnDecoder) => namingDecoder(inner, own),
    turn: (turn: Turn) => namedTurn(turn, own),
  };
  return { conversation: shortened, restoring };
};

function withShortNames(conversation: Conversation, maxLength: number | undefined): ShortNamed {
  if (maxLength === undefined) return { conversation, own: undefined };
  const own = new Map<string, string>();
  const short = (name: string): string => {
    if (name.length <= maxLength) return name;
    const hash = createHash('sha256').update(name, 'utf8').digest('hex').slice(0, HASH_LENGTH);
    const shortened = `${name.slice(0, maxLength - HASH_LENGTH - 1)}_${hash}`;
    own.set(shortened, name);
    return shortened;
  };
  const { tools, toolChoice, messages } = conversation;
  const renamed: Conversation = {
    ...conversation,
    messages: messages.map((message) => renamedCalls(message, short)),
    ...(tools && { tools: tools.map((tool) => shortTool(tool, short)) }),
    ...(toolChoice && { toolChoice: shortChoice(toolChoice, short) }),
  };
  return own.size === 0 ? { conversation, own: undefined } : { conversation: renamed, own };
}

/**
 * Whether a tool name is too long for this format. @param tools as listed by clients of the chat or responses format
 */
export function hasLongNames(tools: unknown, { longestToolName: maxLength }: SpokenFormat): boolean {
  if (maxLength === undefined || !Array.isArray(tools)) return false;
  return tools.some((tool) => {
    const { name, type, ...members } = fieldsOf(tool);
    return textOf(name ?? fieldsOf(members[textOf(type)])['name']).length > maxLength;
  });
}

type Shorten = (name: string) => string;

function shortTool(tool: Tool, short: Shorten): Tool {
  if (tool.type === 'function') return { ...tool, name: short(tool.name) };
  return tool.origin === 'chat' ? { ...tool, value: shortNamed(tool.value, short) } : tool;
}

function shortChoice(choice: ToolChoice, short: Shorten): ToolChoice {
  if (choice.mode === 'tool') return { ...choice, name: short(choice.name) };
  if (choice.mode !== 'opaque' || choice.origin !== 'chat') return choice;
  const value = fieldsOf(choice.value);
  if (value['type'] !== 'allowed_tools') return { ...choice, value: shortNamed(value, short) };
  const { tools, ...allowed } = fieldsOf(value['allowed_tools']);
  const named = listOf(tools).map((tool) => shortNamed(tool, short));
  return { ...choice, value: { ...value, allowed_tools: { ...allowed, tools: named } } };
}

/** In chat, the members are nested under the name of the type. */
function shortNamed(value: unknown, short: Shorten): unknown {
  const type = textOf(fieldsOf(value)['type']);
  const members = fieldsOf(fieldsOf(value)[type]);
  const name = textOf(members['name']);
  return name === '' ? value : { ...fieldsOf(value), [type]: { ...members, name: short(name) } };
}

function renamedCalls(message: Message, short: (name: string) => string): Message {
  if (!message.parts.some((part) => part.type === 'toolCall')) return message;
  return { ...message, parts: message.parts.map((part) => withName(part, short)) };
}

function withName(part: Part, name: (given: string) => string): Part {
  return part.type === 'toolCall' ? { ...part, name: name(part.name) } : part;
}

function namingDecoder(inner: TurnDecoder, own: OwnNames): TurnDecoder {
  const name = (events: TurnEvent[]): TurnEvent[] =>
    events.map((event) =>
      event.type === 'partStart' ? { ...event, part: withName(event.part, (given) => own.get(given) ?? given) } : event,
    );
  return {
    read: (event, data, value) => name(inner.read(event, data, value)),
    close: () => name(inner.close()),
    toldFinish: () => inner.toldFinish(),
  };
}

/** Restores the names in a complete answer. */
function namedTurn(turn: Turn, own: OwnNames): Turn {
  const choices = turn.choices.map((choice) => ({
    ...choice,
    parts: choice.parts.map((part) => withName(part, (given) => own.get(given) ?? given)),
  }));
  return { ...turn, choices };
}
