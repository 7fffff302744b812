/**
 * Client-side tools for upstreams that only know functions: tools in a namespace, custom tools (free text, optionally
 * with a grammar), and the local shell and client-run tool search of the responses format. They are sent upstream as
 * functions, and their calls are restored to the client's own shape. Not a format: it works between the conversation
 * and any spoken format.
 */

import type { Conversation, Message, Part, Turn, TurnEvent } from '../../conversation/conversation.ts';
import type { EncodeTarget, SpokenFormat, TurnDecoder } from '../../conversation/format.ts';
import type { Losses } from '../../conversation/losses.ts';
import type { TurnAdapter } from '../adapter.ts';
import { chosen, searching } from './choice.ts';
import { Directory, type NativeTools } from './directory.ts';
import { withFunctionCalls } from './history.ts';
import { CallRestorer } from './restore.ts';

interface AsFunctions {
  conversation: Conversation;
  /** Maps calls in the answer to the client's tools; undefined when answers need no change. */
  directory: Directory | undefined;
}

/** @throws Uncarried for a forced web search that the upstream does not have */
export const clientTools: TurnAdapter = (conversation, { spoken, target, losses }) => {
  const { conversation: adapted, directory } = withFunctions(conversation, spoken, target, losses);
  if (directory === undefined) return { conversation: adapted };
  const restoring = {
    decoder: (inner: TurnDecoder) => restoringDecoder(inner, directory),
    turn: (turn: Turn) => restoredTurn(turn, directory),
  };
  return { conversation: adapted, restoring };
};

function withFunctions(
  conversation: Conversation,
  spoken: SpokenFormat,
  target: EncodeTarget,
  losses: Losses,
): AsFunctions {
  const native = spoken.nativeTools?.(target.dialect) ?? [];
  if (native === 'all' || !isAffected(conversation)) return { conversation, directory: undefined };
  const directory = new Directory(conversation, native);
  const messages = withFunctionCalls(conversation.messages, directory);
  const { tools: _tools, toolChoice: _choice, ...others } = conversation;
  const choice = chosen(conversation.toolChoice, directory);
  const search = searching(directory, spoken, target, losses);
  return {
    conversation: {
      ...others,
      ...search,
      messages,
      ...(directory.tools.length > 0 && { tools: directory.tools }),
      ...(choice !== undefined && { toolChoice: choice }),
    },
    directory: directory.changesAnswers ? directory : undefined,
  };
}

/** All that a service of the responses format may take, without the calls that become functions. */
const WITHOUT_PATCHES = ['additional_tools', 'custom', 'local_shell', 'namespace', 'tool_search', 'web_search'];

/** The messages with `apply_patch_call` items as calls of a function, for a request that declares it as one. */
export function withPatchCalls(messages: readonly Message[]): Message[] {
  return withFunctionCalls(messages, new Directory({ messages: [], settings: {} }, WITHOUT_PATCHES));
}

/** Whether a responses request has tools or calls that this upstream only knows as functions. */
export function needsFunctions(tools: unknown, input: unknown, native: NativeTools): boolean {
  if (native === 'all') return false;
  return Directory.concerns(tools, native) || Directory.concerns(input, native);
}

function isAffected({ tools, messages, toolChoice }: Conversation): boolean {
  if (tools?.some((tool) => tool.type === 'opaque') || toolChoice?.mode === 'opaque') return true;
  return messages.some(({ parts }) => parts.some(isForeign));
}

function isForeign(part: Part): boolean {
  if (part.type === 'opaque') return part.origin === 'responses';
  if (part.type !== 'toolCall') return false;
  return part.custom === true || part.extras?.responses?.['namespace'] !== undefined;
}

function restoringDecoder(inner: TurnDecoder, directory: Directory): TurnDecoder {
  const restorer = new CallRestorer(directory);
  const restored = (events: TurnEvent[]) => restorer.take(events);
  return {
    read: (name, data, value) => restored(inner.read(name, data, value)),
    close: () => restored(inner.close()),
    toldFinish: () => inner.toldFinish(),
  };
}

/** The same for a complete answer. */
function restoredTurn(turn: Turn, directory: Directory): Turn {
  const restorer = new CallRestorer(directory);
  const choices = turn.choices.map((choice) => ({ ...choice, parts: choice.parts.map((part) => restorer.part(part)) }));
  return { ...turn, choices };
}

export { Directory, type NativeTools } from './directory.ts';
