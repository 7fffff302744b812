/**
 * Rewrites a conversation with deferred tools for any model: their definitions are replaced by a search tool and a tool
 * that calls them by name. The tool list never changes, so the upstream's prompt cache stays valid; each definition is
 * sent once, with the search result that first contains it.
 */
import { scanMembers, stringifyJson } from '../../../base/json.ts';
import type { WordIndex } from '../../../base/word-index.ts';
import type {
  Conversation,
  FunctionTool,
  Message,
  Part,
  Tool,
  ToolCallPart,
  ToolResultPart,
} from '../../conversation/conversation.ts';
import {
  CALL_TOOL,
  type CompileRegex,
  type DeferredSearch,
  type PastStep,
  SEARCH_TOOL,
  type SearchStep,
  type SearchTrace,
} from '../../conversation/deferred-search.ts';
import { fieldsOf, isFields, listOf, textOf } from '../../conversation/fields.ts';
import { argumentsProblem } from './arguments.ts';
import { changedCatalogue } from './protocol.ts';
import { searchByRegex, wordIndexOf } from './search.ts';

export class DeferredConversation {
  readonly #search: DeferredSearch;
  readonly #deferred: ReadonlyMap<string, FunctionTool>;
  readonly #index: WordIndex<FunctionTool>;
  readonly #compile: CompileRegex;
  readonly #trace: SearchTrace;
  /** Tools whose definition the model already has. */
  readonly #sent = new Set<string>();
  /** The conversation to send. */
  readonly conversation: Conversation;

  /**
   * @param trace of the client's format, in which the history shows the earlier steps
   * @throws GatewayError 400 when the history names a deferred tool that is missing from the request
   */
  constructor(conversation: Conversation, search: DeferredSearch, compile: CompileRegex, trace: SearchTrace) {
    const tools = conversation.tools ?? [];
    const deferred = tools.filter((tool): tool is FunctionTool => tool.type === 'function' && tool.deferred === true);
    this.#search = search;
    this.#deferred = new Map(deferred.map((tool) => [tool.name, tool]));
    this.#index = wordIndexOf(deferred);
    this.#compile = compile;
    this.#trace = trace;
    this.conversation = {
      ...conversation,
      tools: [...tools.filter((tool) => !deferred.includes(tool as FunctionTool)), ...this.#ownTools()],
      messages: this.#messages(conversation.messages),
    };
  }

  #ownTools(): Tool[] {
    const by = this.#search.type === 'custom' ? this.#search.tool : SEARCH_TOOL;
    const call = callTool(by);
    return this.#search.type === 'custom' ? [call] : [searchTool(this.#search.type, this.#deferred.size), call];
  }

  /** Runs the model's search or call. Returns `call` when the client must run it. */
  run(held: ToolCallPart): { step: SearchStep } | { call: ToolCallPart } {
    if (held.name === SEARCH_TOOL) return { step: this.#finish(this.#searched(held)) };
    const wrapped = unwrap(held.arguments);
    const tool = this.#deferred.get(wrapped.tool);
    if (tool !== undefined && this.#problem(wrapped, tool) === undefined) {
      const { signature } = held;
      return {
        call: {
          type: 'toolCall',
          id: held.id,
          name: tool.name,
          arguments: wrapped.arguments,
          ...(signature && { signature }),
        },
      };
    }
    return { step: this.#finish({ id: held.id, tool: CALL_TOOL, arguments: held.arguments }) };
  }

  #searched({ id, arguments: text }: ToolCallPart): PastStep {
    const query = textOf(fieldsOf(parsed(text))['query']);
    const { maxResults } = this.#search;
    const found =
      this.#search.type === 'regex'
        ? searchByRegex([...this.#deferred.values()], query, maxResults, this.#compile)
        : this.#index.search(query, maxResults).map(({ name }) => name);
    return { id, tool: SEARCH_TOOL, arguments: text, ...(found !== undefined && { found }) };
  }

  #finish(step: PastStep): SearchStep {
    return { ...step, result: this.#resultOf(step) };
  }

  /** The result for the model; depends only on the request and earlier steps. */
  #resultOf({ tool, found, arguments: text }: PastStep): string {
    if (tool === SEARCH_TOOL) {
      return found === undefined
        ? stringifyJson({ error: 'the query is not a regular expression that can be searched for' })
        : stringifyJson({ tools: this.#definitions(found) });
    }
    const wrapped = unwrap(text);
    const called = this.#deferred.get(wrapped.tool);
    if (called === undefined) {
      return stringifyJson({ error: `no deferred tool has the name ${JSON.stringify(wrapped.tool)}` });
    }
    return stringifyJson({ error: this.#problem(wrapped, called), tools: this.#definitions([called.name]) });
  }

  #problem(wrapped: Wrapped, tool: FunctionTool): string | undefined {
    const value = parsed(wrapped.arguments);
    if (!isFields(value)) return 'the arguments are not a JSON object';
    return tool.parameters === undefined ? undefined : argumentsProblem(value, tool.parameters);
  }

  /** Definitions already in the conversation are not repeated. */
  #definitions(names: readonly string[]): unknown[] {
    return names.map((name) => {
      const tool = this.#deferred.get(name);
      if (tool === undefined) throw changedCatalogue(name);
      if (this.#sent.has(name)) return { name, note: 'described above' };
      this.#sent.add(name);
      const { description, parameters } = tool;
      return {
        name,
        ...(description !== undefined && { description }),
        parameters: parameters ?? { type: 'object', properties: {} },
      };
    });
  }

  // Rebuilds the history: the client's messages with the steps between its turns.

  #messages(messages: readonly Message[]): Message[] {
    const searches = new Set<string>();
    return messages.flatMap((message) => {
      for (const part of message.parts) {
        if (part.type === 'toolCall' && this.#search.type === 'custom' && part.name === this.#search.tool)
          searches.add(part.id);
      }
      if (message.role === 'assistant') return this.#assistant(message);
      return searches.size === 0 || message.role !== 'tool' ? [message] : [this.#found(message, searches)];
    });
  }

  #assistant(message: Message): Message[] {
    const { steps, taken } = this.#trace.read(message.parts);
    const turns: Message[] = [];
    let parts: Part[] = [];
    let ended: SearchStep[] = [];
    const close = () => {
      if (parts.length > 0) turns.push({ ...message, parts });
      if (ended.length > 0) turns.push(answers(ended));
      parts = [];
      ended = [];
    };
    message.parts.forEach((part, at) => {
      const step = steps.get(at);
      if (step !== undefined) {
        const { id, tool: name, arguments: text } = step;
        parts.push({ type: 'toolCall', id, name, arguments: text });
        ended.push(this.#finish(step));
      } else if (!taken.has(at)) {
        if (ended.length > 0) close();
        parts.push(part.type === 'toolCall' ? this.#wrapped(part) : part);
      }
    });
    close();
    return turns;
  }

  #wrapped(part: ToolCallPart): ToolCallPart {
    if (part.custom === true || !this.#deferred.has(part.name)) return part;
    return { ...part, name: CALL_TOOL, arguments: wrap(part.name, part.arguments) };
  }

  /** Appends the definitions of the tools named by the client's own search result. */
  #found(message: Message, searches: ReadonlySet<string>): Message {
    const parts = message.parts.map((part) => {
      if (part.type !== 'toolResult' || !searches.has(part.callId) || part.isError === true) return part;
      const names = this.#namesIn(part);
      return names.length === 0 ? part : { ...part, parts: [...part.parts, definitions(this.#definitions(names))] };
    });
    return { ...message, parts };
  }

  #namesIn({ parts }: ToolResultPart): string[] {
    if (this.#search.type !== 'custom') return [];
    const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    const named = fieldsOf(parsed(text))[this.#search.resultKey];
    const names = listOf(named).filter((name): name is string => typeof name === 'string');
    return [...new Set(names)].slice(0, this.#search.maxResults);
  }
}

function definitions(tools: readonly unknown[]): Part {
  return { type: 'text', text: stringifyJson({ tools }) };
}

function answers(steps: readonly SearchStep[]): Message {
  return {
    role: 'tool',
    parts: steps.map(({ id, result }) => ({ type: 'toolResult', callId: id, parts: [{ type: 'text', text: result }] })),
  };
}

function searchTool(by: 'bm25' | 'regex', count: number): FunctionTool {
  const how =
    by === 'regex'
      ? 'A regular expression (RE2) that the name or the description of the tool matches, in any case'
      : 'Words that say what the tool is to do';
  return {
    type: 'function',
    name: SEARCH_TOOL,
    description:
      `Finds further tools: ${count} of them are not listed here. Search before saying that something cannot be done. ` +
      `The result holds names, descriptions and parameters; a tool that was found is called by ${CALL_TOOL}.`,
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: how } },
      required: ['query'],
      additionalProperties: false,
    },
  };
}

function callTool(search: string): FunctionTool {
  return {
    type: 'function',
    name: CALL_TOOL,
    description: `Calls a tool that ${search} has found. Tools that are listed here are called directly instead.`,
    parameters: {
      type: 'object',
      properties: {
        tool: { type: 'string', description: 'Its name, as it was found' },
        arguments: { type: 'object', description: 'Its arguments, by the parameters that were found with it' },
      },
      required: ['tool', 'arguments'],
      additionalProperties: false,
    },
  };
}

interface Wrapped {
  tool: string;
  /** JSON text as the model wrote it. */
  arguments: string;
}

/** Reads members as text, so that arguments keep every digit. */
function unwrap(text: string): Wrapped {
  const value = parsed(text);
  if (!isFields(value)) return { tool: '', arguments: '' };
  const args = value['arguments'];
  // Some models encode the object as a string.
  if (typeof args === 'string') return { tool: textOf(value['tool']), arguments: args };
  const member = scanMembers(text).findLast(({ key }) => key === 'arguments');
  const written = member === undefined ? '{}' : text.slice(member.valueStart, member.valueEnd);
  return { tool: textOf(value['tool']), arguments: written };
}

function wrap(name: string, text: string): string {
  const written = text.trim() === '' ? '{}' : parsed(text) === undefined ? JSON.stringify(text) : text;
  return `{"tool":${JSON.stringify(name)},"arguments":${written}}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
