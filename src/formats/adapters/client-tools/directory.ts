/** Maps between the client's tools and their upstream names. */
import { createHash } from 'node:crypto';
import type { Conversation, FunctionTool, OpaqueTool, Tool, ToolCallPart } from '../../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../../conversation/fields.ts';
import { APPLY_PATCH } from '../../conversation/patch-call.ts';
import { decodeTool } from '../../responses/decode.ts';
import { INPUT, LOCAL_SHELL, TOOL_SEARCH } from './shapes.ts';

/** Tool types besides `function` that an upstream accepts unchanged. */
export type NativeTools = readonly string[] | 'all';

/** A tool as the client declared it. */
export interface ClientTool {
  name: string;
  namespace?: string;
  kind: 'function' | 'custom' | NonNullable<ToolCallPart['native']>;
}

const WEB_SEARCH = /^web_search(?:_preview)?(?:_\d[\d_]*)?$/;
const HASH_LENGTH = 8;

/**
 * Tool and item types that are converted to functions and calls, with the type that makes an upstream accept them
 * unchanged.
 */
const CONCERNED: Readonly<Record<string, string>> = {
  namespace: 'namespace',
  custom: 'custom',
  custom_tool_call: 'custom',
  custom_tool_call_output: 'custom',
  local_shell: 'local_shell',
  local_shell_call: 'local_shell',
  local_shell_call_output: 'local_shell',
  apply_patch: 'apply_patch',
  apply_patch_call: 'apply_patch',
  apply_patch_call_output: 'apply_patch',
  tool_search: 'tool_search',
  tool_search_call: 'tool_search',
  tool_search_output: 'tool_search',
  additional_tools: 'additional_tools',
};

export class Directory {
  /** The tools to send upstream. */
  readonly tools: Tool[] = [];
  /** The client's web search options; the upstream may have its own search. */
  webSearch: Fields | undefined;
  readonly #native: readonly string[];
  readonly #byUpstreamName = new Map<string, ClientTool>();
  readonly #upstreamNames = new Map<string, string>();
  /** Tools by name without namespace; undefined where several namespaces share the name. */
  readonly #byBareName = new Map<string, ClientTool | undefined>();
  /** Namespaces whose description was added to their first tool. */
  readonly #described = new Set<string>();

  /** @param native a list; an upstream that accepts all types needs no directory */
  constructor({ tools = [], messages }: Conversation, native: readonly string[]) {
    this.#native = native;
    for (const tool of tools) this.#add(tool);
    for (const { parts } of messages) {
      for (const part of parts) {
        if (part.type !== 'opaque' || part.origin !== 'responses') continue;
        const item = fieldsOf(part.value);
        if (this.#isExpanded(item['type']))
          for (const tool of listOf(item['tools'])) this.#add(decodeTool(fieldsOf(tool)));
      }
    }
  }

  /** Whether one of these tools or items is not accepted by the upstream unchanged. */
  static concerns(list: unknown, native: readonly string[]): boolean {
    return listOf(list).some((entry) => {
      const { type, namespace } = fieldsOf(entry);
      if (namespace !== undefined && !native.includes('namespace')) return true;
      const kind = typeof type === 'string' ? (CONCERNED[type] ?? (WEB_SEARCH.test(type) ? 'web_search' : '')) : '';
      return kind !== '' && !native.includes(kind);
    });
  }

  get changesAnswers(): boolean {
    return this.#byUpstreamName.size > 0;
  }

  takes(type: string): boolean {
    return this.#native.includes(type);
  }

  /** The tool for a name in an answer. Models sometimes omit the namespace: a bare name is accepted if it is unique. */
  find(upstreamName: string): ClientTool | undefined {
    return this.#byUpstreamName.get(upstreamName) ?? this.#byBareName.get(upstreamName);
  }

  /** The upstream name of a tool, including one that only the history calls. */
  upstreamName(name: string, namespace: string | undefined): string {
    return this.#upstreamNames.get(keyOf(name, namespace)) ?? joined(name, namespace);
  }

  /** The upstream name of a tool chosen by the client, with or without namespace. */
  chosenName(name: string, namespace: string | undefined): string {
    const known = this.#upstreamNames.get(keyOf(name, namespace));
    if (known !== undefined) return known;
    const tool = namespace === undefined ? this.#byBareName.get(name) : undefined;
    return tool === undefined ? joined(name, namespace) : this.upstreamName(name, tool.namespace);
  }

  #isExpanded(type: unknown): boolean {
    return (
      (type === 'additional_tools' && !this.takes('additional_tools')) ||
      (type === 'tool_search_output' && !this.takes('tool_search'))
    );
  }

  #add(tool: Tool): void {
    if (tool.type === 'function') this.#function(tool, undefined);
    else if (tool.origin === 'chat') this.#custom(tool, undefined);
    else if (tool.origin === 'responses') this.#typed(tool, fieldsOf(tool.value));
    else this.tools.push(tool);
  }

  #typed(tool: OpaqueTool, value: Fields): void {
    const type = textOf(value['type']);
    const kind = WEB_SEARCH.test(type) ? 'web_search' : type;
    if (this.takes(kind)) this.tools.push(tool);
    else if (kind === 'web_search') this.webSearch = value;
    else if (type === 'namespace') this.#namespace(value);
    else if (type === 'local_shell') this.#own(LOCAL_SHELL, { name: type, kind: type });
    else if (type === 'apply_patch') this.#own(APPLY_PATCH, { name: type, kind: type });
    // Provider-run search hides tools until needed; without it, all are sent.
    else if (type === 'tool_search' && value['execution'] === 'client') {
      const { description, parameters } = value;
      const own: FunctionTool = { ...TOOL_SEARCH };
      if (typeof description === 'string') own.description = description;
      if (isFields(parameters)) own.parameters = parameters;
      this.#own(own, { name: type, kind: type });
    } else if (type !== 'tool_search') this.tools.push(tool);
  }

  #namespace(value: Fields): void {
    const namespace = { name: textOf(value['name']), description: textOf(value['description']) };
    for (const entry of listOf(value['tools'])) {
      const tool = decodeTool(fieldsOf(entry));
      if (tool.type === 'function') this.#function(tool, namespace);
      else if (tool.origin === 'chat') this.#custom(tool, namespace);
    }
  }

  #function(tool: FunctionTool, namespace: Namespace | undefined): void {
    const name = this.#enter({ name: tool.name, kind: 'function', ...(namespace && { namespace: namespace.name }) });
    if (name === undefined) return;
    const described = this.#description(tool.description, namespace);
    const { description: _, ...others } = withoutDeferral(tool);
    this.tools.push({ ...others, name, ...(described !== undefined && { description: described }) });
  }

  #custom(tool: OpaqueTool, namespace: Namespace | undefined): void {
    const value = fieldsOf(tool.value);
    const custom = fieldsOf(value['custom']);
    if (value['type'] !== 'custom') {
      this.tools.push(tool);
      return;
    }
    const name = this.#enter({
      name: textOf(custom['name']),
      kind: 'custom',
      ...(namespace && { namespace: namespace.name }),
    });
    if (name === undefined) return;
    const described = this.#description(textOf(custom['description']) || undefined, namespace);
    if (this.takes('custom')) {
      const renamed = { ...custom, name, ...(described !== undefined && { description: described }) };
      this.tools.push({ ...tool, value: { ...value, custom: renamed } });
      return;
    }
    const description = [described, grammarOf(fieldsOf(custom['format']))].filter(Boolean).join('\n\n');
    this.tools.push({ type: 'function', name, ...(description !== '' && { description }), parameters: INPUT });
  }

  #own(tool: FunctionTool, client: ClientTool): void {
    const name = this.#enter(client);
    if (name !== undefined) this.tools.push({ ...tool, name });
  }

  #description(own: string | undefined, namespace: Namespace | undefined): string | undefined {
    if (namespace === undefined || namespace.description === '' || this.#described.has(namespace.name)) return own;
    this.#described.add(namespace.name);
    return [own, `About all tools of ${namespace.name}: ${namespace.description}`].filter(Boolean).join('\n\n');
  }

  /** Returns undefined for a known tool. */
  #enter(tool: ClientTool): string | undefined {
    const key = keyOf(tool.name, tool.namespace);
    if (this.#upstreamNames.has(key)) return undefined;
    let name = joined(tool.name, tool.namespace);
    if (this.#byUpstreamName.has(name)) {
      const hash = createHash('sha256').update(key, 'utf8').digest('hex').slice(0, HASH_LENGTH);
      name = `${name}_${hash}`;
    }
    this.#byUpstreamName.set(name, tool);
    this.#upstreamNames.set(key, name);
    if (tool.namespace !== undefined) {
      this.#byBareName.set(tool.name, this.#byBareName.has(tool.name) ? undefined : tool);
    }
    return name;
  }
}

interface Namespace {
  name: string;
  description: string;
}

function keyOf(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}\u0000${name}`;
}

/** Follows the naming of MCP clients: `mcp__server__tool`. */
function joined(name: string, namespace: string | undefined): string {
  if (namespace === undefined || namespace === '') return name;
  const whole = namespace.endsWith('__') ? namespace + name : `${namespace}__${name}`;
  return whole.replaceAll(/[^a-zA-Z0-9_-]/g, '_');
}

/** Removes the mark for a search that this upstream does not have. */
function withoutDeferral(tool: FunctionTool): FunctionTool {
  const own = tool.extras?.responses;
  if (own?.['defer_loading'] === undefined) return tool;
  const { defer_loading: _, ...others } = own;
  return { ...tool, extras: { ...tool.extras, responses: others } };
}

function grammarOf({ type, grammar }: Fields): string {
  if (type !== 'grammar') return '';
  const { syntax, definition } = fieldsOf(grammar);
  return `The input must match this ${textOf(syntax)} grammar:\n${textOf(definition)}`;
}
