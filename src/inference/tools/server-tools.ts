/**
 * Server tools on the turn loop: the model gets a function for each tool that the request declares, the gateway runs its
 * calls, and the calls of earlier answers are read back from the history.
 */
import type { Limits } from '../../base/config.ts';
import { toWireName, WIRE_NAME } from '../../base/namespace.ts';
import type {
  Citation,
  Conversation,
  Extras,
  FormatId,
  FunctionTool,
  Message,
  Tool,
  ToolCallPart,
  ToolChoice,
} from '../../formats/conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, textOf } from '../../formats/conversation/fields.ts';
import type { ServedFormat } from '../../formats/conversation/format.ts';
import { Uncarried } from '../../formats/conversation/losses.ts';
import { type ToolStart, type ToolTrace, withPastSteps } from '../../formats/conversation/tool-steps.ts';
import { serverToolName } from '../../formats/server-tools/index.ts';
import type { StartedPart } from '../answer/joined-answer.ts';
import type {
  GatewayToolKind,
  GatewayTools,
  ToolPlace,
  ToolRequest,
  ToolRun,
  ToolsAsking,
  ToolsRunning,
  WantedTools,
} from '../turns/gateway-tools.ts';
import { declaredTools } from './declared.ts';
import { LoopEnd } from './loop-end.ts';
import { type RunTool, runTool } from './run-tool.ts';
import type { RequestedTool } from './tool.ts';

export const serverTools: GatewayToolKind = {
  wanted(request, parts) {
    const { format, document } = request;
    const declared = declaredTools(format, document);
    if (declared.length === 0 && !format.toolTrace.holds(document.structure)) return undefined;
    const all = declared.map(({ tool: { name }, settings }) => ({ name, settings }));
    return new Wanted(
      request,
      declared.map(({ tool, shownName, settings, path }) => {
        return { wireName: tool.name, shownName, tool: tool.begin(settings, path, parts, all) };
      }),
      parts.limits,
    );
  },
};

interface Begun {
  wireName: string;
  /** The name in the client's spelling. */
  shownName: string;
  tool: RequestedTool;
}

/** What upstreams do at most without `max_uses`, before they pause or answer. */
const USUAL_SEARCHES = 10;

class Wanted implements WantedTools {
  readonly #request: ToolRequest;
  readonly #tools: readonly Begun[];
  readonly #limits: Limits;
  readonly definitionBytes: number;
  readonly nativeSearches: number | undefined;

  constructor(request: ToolRequest, tools: readonly Begun[], limits: Limits) {
    this.#limits = limits;
    this.#request = request;
    this.#tools = tools;
    const texts = tools.map(({ tool }) => JSON.stringify(definitionOf(tool, tool.functionName)));
    this.definitionBytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    const search = tools.find(({ tool }) => tool.native?.tool === 'web_search')?.tool.native;
    this.nativeSearches = search && (countOf(search.settings['max_uses']) || USUAL_SEARCHES);
  }

  load(asking: ToolsAsking): Promise<void> | undefined {
    const loading = this.#tools.map(({ tool }) => tool.load?.(asking)).filter((each) => each !== undefined);
    return loading.length === 0 ? undefined : Promise.all(loading).then(() => undefined);
  }

  begin(conversation: Conversation, format: ServedFormat): GatewayTools {
    if (this.#tools.length > 0 && (conversation.choices ?? 1) > 1) {
      throw new Uncarried('n', 'server tools support a single choice only');
    }
    return new ServerTools(conversation, format, this.#tools, {
      limits: this.#limits,
      structure: this.#request.document.structure,
    });
  }
}

class ServerTools implements GatewayTools {
  readonly conversation: Conversation;
  readonly ending: LoopEnd | undefined;
  readonly #trace: ToolTrace;
  readonly #byFunction = new Map<string, Begun>();
  /** Calls so far. */
  #calls = 0;

  constructor(
    conversation: Conversation,
    { id, toolTrace }: ServedFormat,
    begun: readonly Begun[],
    { limits, structure }: { limits: Limits; structure: Fields },
  ) {
    this.#trace = toolTrace;
    const messages = withPastSteps(conversation.messages, toolTrace);
    const tools = this.#functions(conversation.tools ?? [], id, begun);
    this.conversation = { ...conversation, messages };
    if (begun.length === 0) {
      if (tools.length === 0) Object.assign(this.conversation, toolsOf(messages));
      return;
    }
    const wireNames = new Map([...this.#byFunction].map(([name, { wireName }]) => [name, wireName]));
    this.ending = new LoopEnd(structure, limits.serverToolTurns, wireNames);
    const choice = this.ending.disabled ? { mode: 'none' as const } : this.#choice(conversation.toolChoice);
    this.conversation = {
      ...this.conversation,
      tools,
      ...(choice && { toolChoice: choice }),
      extras: withoutOwnLimit(conversation.extras),
    };
  }

  /** The tools with a function in place of each server tool. */
  #functions(tools: readonly Tool[], format: FormatId, begun: readonly Begun[]): Tool[] {
    const taken = new Set(tools.flatMap((tool) => (tool.type === 'function' ? [tool.name] : [])));
    let next = 0;
    return tools.map((tool) => {
      const type = tool.type === 'opaque' ? fieldsOf(tool.value)['type'] : undefined;
      if (serverToolName(type, format) === undefined) return tool;
      const one = begun[next++]!;
      const name = freeName(one.tool.functionName, taken);
      taken.add(name);
      this.#byFunction.set(name, one);
      const { native } = one.tool;
      return { ...definitionOf(one.tool, name), ...(native && { native }) };
    });
  }

  /** A choice of a server tool, as that of its function. */
  #choice(choice: ToolChoice | undefined): ToolChoice | undefined {
    if (choice?.mode !== 'opaque') return choice;
    const type = toWireName(textOf(fieldsOf(choice.value)['type']));
    for (const [name, { wireName }] of this.#byFunction) if (type === wireName) return { mode: 'tool', name };
    return choice;
  }

  claims(name: string): boolean {
    return this.#byFunction.get(name)?.tool.run !== undefined;
  }

  start(call: ToolCallPart, place: ToolPlace): StartedPart | undefined {
    const part = this.#trace.start(this.#startOf(call, place));
    return part && { part, open: this.#trace.replaces };
  }

  cites(text: string): Citation[] {
    return [...this.#byFunction.values()].flatMap(({ tool }) => tool.cites?.(text) ?? []);
  }

  async run(call: ToolCallPart, place: ToolPlace, running: ToolsRunning): Promise<ToolRun> {
    const tool = this.#byFunction.get(call.name)!.tool as RunTool;
    this.#calls += 1;
    const outcome = await runTool(tool, call.arguments, { running, calls: this.#calls });
    const { result, failed = false, item, block, added } = outcome;
    const shown = this.#trace.end({ ...this.#startOf(call, place), result, failed, item, ...(block && { block }) });
    const { replaces, hidesItems } = this.#trace;
    return { step: { id: call.id, visible: [shown], replaces, result, failed, ...(hidesItems && added && { added }) } };
  }

  #startOf({ id, name, arguments: text }: ToolCallPart, { turn, mixed }: ToolPlace): ToolStart {
    return { id, tool: this.#byFunction.get(name)!.shownName, name, arguments: text, turn, mixed };
  }
}

function definitionOf({ description, parameters }: RequestedTool, name: string): FunctionTool {
  return { type: 'function', name, description, parameters };
}

/** A client may have a function of the same name. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let count = 1; taken.has(free); count++) free = `${WIRE_NAME}_${name}${count === 1 ? '' : count}`;
  return free;
}

/** Upstreams refuse calls in a history without a list of tools: the tools that were called, for a request without any. */
function toolsOf(messages: readonly Message[]): Pick<Conversation, 'tools' | 'toolChoice'> {
  const names = new Set<string>();
  for (const { parts } of messages) for (const part of parts) if (part.type === 'toolCall') names.add(part.name);
  if (names.size === 0) return {};
  const parameters = { type: 'object', properties: {} };
  const tools = [...names].map(
    (name): FunctionTool => ({ type: 'function', name, description: 'No longer available', parameters }),
  );
  return { tools, toolChoice: { mode: 'none' } };
}

/** The limit of calls is the gateway's own, as long as it runs the tools. */
function withoutOwnLimit(extras: Extras | undefined): Extras | undefined {
  if (extras?.responses?.['max_tool_calls'] === undefined) return extras;
  const { max_tool_calls: _, ...others } = extras.responses;
  return { ...extras, responses: others };
}
