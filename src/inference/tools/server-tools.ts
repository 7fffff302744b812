/**
 * Server tools on the turn loop: the model gets a function for each tool that the request declares, the gateway runs its
 * calls, and the calls of earlier answers are read back from the history.
 */
import type { Limits } from '../../base/config.ts';
import { toWireName, WIRE_NAME } from '../../base/namespace.ts';
import { withPatchCalls } from '../../formats/adapters/index.ts';
import type {
  Citation,
  Conversation,
  Extras,
  FormatId,
  FunctionTool,
  Message,
  OpaquePart,
  Part,
  Tool,
  ToolCallPart,
  ToolChoice,
} from '../../formats/conversation/conversation.ts';
import { type Fields, fieldsOf, textOf } from '../../formats/conversation/fields.ts';
import type { ServedFormat, UpstreamWork } from '../../formats/conversation/format.ts';
import { Uncarried } from '../../formats/conversation/losses.ts';
import {
  type CallResult,
  type ToolStart,
  type ToolTrace,
  withPastSteps,
} from '../../formats/conversation/tool-steps.ts';
import { serverToolName, sumOfWork, workOf } from '../../formats/server-tools/index.ts';
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
import { ApprovedCalls } from './approved-calls.ts';
import { declaredTools } from './declared.ts';
import { LoopEnd } from './loop-end.ts';
import { ResumedCalls } from './resumed-calls.ts';
import { type RunTool, runTool } from './run-tool.ts';
import type { RequestedServer, RequestedTool } from './tool.ts';

export const serverTools: GatewayToolKind = {
  wanted(request, parts) {
    const { format, document } = request;
    const declared = declaredTools(format, document);
    if (declared.length === 0 && !format.toolTrace.holds(document.structure)) return undefined;
    const all = declared.map(({ tool: { name }, settings }) => ({ name, settings }));
    return new Wanted(
      request,
      declared.map(({ tool, shownName, settings, path }) => {
        return { wireName: tool.name, shownName, begun: tool.begin(settings, path, parts, all, shownName) };
      }),
      parts.limits,
    );
  },
};

interface Declaration {
  wireName: string;
  /** The name in the client's spelling. */
  shownName: string;
  begun: RequestedTool | RequestedServer;
}

/** A function of the model. */
interface Begun extends Omit<Declaration, 'begun'> {
  tool: RequestedTool;
}

class Wanted implements WantedTools {
  readonly #request: ToolRequest;
  readonly #declarations: readonly Declaration[];
  readonly #limits: Limits;
  readonly #approved: ApprovedCalls;
  readonly #resumed: ResumedCalls;
  readonly nativeWork: UpstreamWork | undefined;
  readonly lasting: boolean;
  #definitionBytes: number | undefined;

  constructor(request: ToolRequest, declarations: readonly Declaration[], limits: Limits) {
    this.#limits = limits;
    this.#request = request;
    this.#declarations = declarations;
    this.#approved = new ApprovedCalls(request.format.toolTrace, request.document.value);
    this.#resumed = new ResumedCalls(request.format.toolTrace, request.document.value);
    // What a server changes is not known here, nor what calls that continue have changed.
    const changes = this.#servers.length > 0 || this.#resumed.count > 0;
    this.lasting = changes || this.#functions.some(({ tool }) => tool.lasting === true);
    const native = this.#functions.flatMap(({ tool }) => tool.native ?? []);
    const work = native.map(({ tool, settings }) => workOf(tool, settings));
    this.nativeWork = work.length === 0 ? undefined : sumOfWork(work);
  }

  get definitionBytes(): number {
    this.#definitionBytes ??= this.#functions.reduce((sum, { tool }) => sum + sizeOf(tool), 0);
    return this.#definitionBytes;
  }

  load(asking: ToolsAsking): Promise<void> | undefined {
    const loading = this.#declarations.map(({ begun }) => ('discover' in begun ? undefined : begun.load?.(asking)));
    const waiting = loading.filter((each) => each !== undefined);
    return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => undefined);
  }

  get discover(): WantedTools['discover'] {
    const servers = this.#servers;
    if (servers.length === 0) return undefined;
    return async (running) => {
      await Promise.all(servers.map((server) => server.discover(running)));
      this.#definitionBytes = undefined;
    };
  }

  get continueCalls(): WantedTools['continueCalls'] {
    const approves = this.#servers.length > 0 && this.#approved.any;
    const resumes = this.#resumed.count > 0 && this.#functions.some(({ tool }) => tool.suspends !== undefined);
    if (!approves && !resumes) return undefined;
    return async (running) => {
      const functions = this.#functions;
      await Promise.all([
        approves && this.#approved.run(functions, running),
        resumes && this.#resumed.run(functions, running, this.#approved.count),
      ]);
      return this.#resumed.waits ? this.#shownFirst(this.#request.format) : undefined;
    };
  }

  get #functions(): Begun[] {
    return this.#declarations.flatMap(functionsOf);
  }

  get #servers(): RequestedServer[] {
    return this.#declarations.flatMap(({ begun }) => ('discover' in begun ? begun : []));
  }

  begin(conversation: Conversation, format: ServedFormat): GatewayTools {
    if (this.#declarations.length > 0 && (conversation.choices ?? 1) > 1) {
      throw new Uncarried('n', 'server tools support a single choice only');
    }
    const { structure } = this.#request.document;
    return new ServerTools(conversation, format, this.#declarations, {
      limits: this.#limits,
      structure,
      approved: this.#approved.results,
      resumed: this.#resumed.results,
      prelude: this.#shownFirst(format),
    });
  }

  #shownFirst(format: ServedFormat): Part[] {
    const { structure } = this.#request.document;
    return [...this.#lists(format, structure), ...this.#approved.shown, ...this.#resumed.shown];
  }

  /** The lists of tools that the client has not seen yet. */
  #lists({ toolTrace: { mcp } }: ServedFormat, request: Fields): OpaquePart[] {
    const lists = this.#servers.flatMap(({ list }) => list ?? []);
    if (mcp === undefined || lists.length === 0) return [];
    const seen = mcp.listedIn(request);
    return lists.flatMap((list) => (seen.has(list.label) ? [] : mcp.listed(list)));
  }
}

function functionsOf({ begun, ...declaration }: Declaration): Begun[] {
  return ('discover' in begun ? begun.tools : [begun]).map((tool) => ({ ...declaration, tool }));
}

interface Beginning {
  limits: Limits;
  structure: Fields;
  approved: ReadonlyMap<string, CallResult>;
  resumed: ReadonlyMap<number, CallResult>;
  prelude: readonly Part[];
}

class ServerTools implements GatewayTools {
  readonly conversation: Conversation;
  readonly ending: LoopEnd | undefined;
  readonly prelude: readonly Part[];
  readonly resumes: boolean;
  readonly #trace: ToolTrace;
  readonly #byFunction = new Map<string, Begun>();
  readonly #hasOwnItems: boolean;
  /** Calls so far. */
  #calls: number;

  constructor(
    conversation: Conversation,
    { id, toolTrace }: ServedFormat,
    declarations: readonly Declaration[],
    { limits, structure, approved, resumed, prelude }: Beginning,
  ) {
    this.#trace = toolTrace;
    this.#hasOwnItems = id === 'responses';
    this.resumes = declarations.some(({ begun }) => 'native' in begun && begun.native !== undefined);
    this.prelude = prelude;
    this.#calls = approved.size + resumed.size;
    const { mcp, suspended } = toolTrace;
    const answered = mcp?.settled(conversation.messages, approved) ?? conversation.messages;
    const messages = withPastSteps(suspended?.settled(answered, resumed) ?? answered, toolTrace);
    const tools = this.#functions(conversation.tools ?? [], id, declarations);
    const patches = this.#hasOwnItems && declarations.some(({ begun }) => 'ownCalls' in begun);
    this.conversation = { ...conversation, messages: patches ? withPatchCalls(messages) : messages };
    if (declarations.length === 0) {
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
  #functions(tools: readonly Tool[], format: FormatId, declarations: readonly Declaration[]): Tool[] {
    const taken = new Set(tools.flatMap((tool) => (tool.type === 'function' ? [tool.name] : [])));
    let next = 0;
    return tools.flatMap((tool) => {
      if (tool.type !== 'opaque' || serverToolName(tool.value, format) === undefined) return [tool];
      return functionsOf(declarations[next++]!).map((one) => {
        const name = freeName(one.tool.functionName, taken);
        taken.add(name);
        this.#byFunction.set(name, one);
        const { native } = one.tool;
        return { ...definitionOf(one.tool, name), ...(native && { native }) };
      });
    });
  }

  /** A choice of a server tool, as that of its function. */
  #choice(choice: ToolChoice | undefined): ToolChoice | undefined {
    if (choice?.mode !== 'opaque') return choice;
    const { type, server_label: label, name: tool } = fieldsOf(choice.value);
    const isChosen = ({ wireName, shownName, tool: { mcp } }: Begun) =>
      mcp === undefined
        ? toWireName(textOf(type)) === wireName || type === shownName
        : type === shownName && mcp.label === label && (tool === undefined || mcp.name === tool);
    const names = [...this.#byFunction].flatMap(([name, one]) => (isChosen(one) ? name : []));
    // Of several tools of a server, the model has to choose.
    if (names.length > 1) return { mode: 'required' };
    return names[0] === undefined ? choice : { mode: 'tool', name: names[0] };
  }

  claims(name: string): boolean {
    return this.#byFunction.get(name)?.tool.run !== undefined;
  }

  ownCalls(name: string): ToolCallPart['native'] {
    return this.#hasOwnItems ? this.#byFunction.get(name)?.tool.ownCalls : undefined;
  }

  start(call: ToolCallPart, place: ToolPlace): StartedPart | undefined {
    if (this.#asksFirst(call)) return undefined;
    const part = this.#trace.start(this.#startOf(call, place));
    return part && { part, open: this.#trace.replaces };
  }

  cites(text: string): Citation[] {
    return [...this.#byFunction.values()].flatMap(({ tool }) => tool.cites?.(text) ?? []);
  }

  async run(call: ToolCallPart, place: ToolPlace, running: ToolsRunning): Promise<ToolRun> {
    if (this.#asksFirst(call)) return { asks: this.#trace.mcp!.asked(this.#startOf(call, place)) };
    const tool = this.#byFunction.get(call.name)!.tool as RunTool;
    this.#calls += 1;
    const outcome = await runTool(tool, call.arguments, { running, calls: this.#calls });
    const { result, failed = false, item, block, added, waits } = outcome;
    if (waits !== undefined) {
      const { waiting, asked } = this.#trace.suspended!;
      return { waits: { shown: waiting(this.#startOf(call, place), item), calls: asked(call.id, waits) } };
    }
    const shown = this.#trace.end({ ...this.#startOf(call, place), result, failed, item, ...(block && { block }) });
    const { replaces, hidesItems } = this.#trace;
    return { step: { id: call.id, visible: [shown], replaces, result, failed, ...(hidesItems && added && { added }) } };
  }

  #startOf({ id, name, arguments: text }: ToolCallPart, { turn, mixed }: ToolPlace): ToolStart {
    const { shownName, tool } = this.#byFunction.get(name)!;
    const start = { id, tool: shownName, name, arguments: text, turn, mixed };
    return tool.mcp === undefined ? start : { ...start, mcp: tool.mcp };
  }

  #asksFirst({ name }: ToolCallPart): boolean {
    return this.#byFunction.get(name)!.tool.asksFirst === true;
  }
}

function definitionOf({ description, parameters }: RequestedTool, name: string): FunctionTool {
  return { type: 'function', name, description, parameters };
}

function sizeOf(tool: RequestedTool): number {
  return Buffer.byteLength(JSON.stringify(definitionOf(tool, tool.functionName)));
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
