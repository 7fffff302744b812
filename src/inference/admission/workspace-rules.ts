/** Workspace rules for requests: the default model, and disabled tools. */
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { toWireName } from '../../base/namespace.ts';
import type { RequestFacts } from '../../formats/conversation/format.ts';
import type { ApiType } from '../../spend/index.ts';

/**
 * Adds the workspace's default model if the request names none and the workspace has one for this kind of operation.
 */
export function withDefaultModel(facts: RequestFacts, { workspace }: Caller, apiType: ApiType): RequestFacts {
  if (facts.model !== undefined || facts.fallbackModels.length > 0) return facts;
  const model =
    apiType === 'completions' ? workspace.defaultTextModel : apiType === 'image' ? workspace.defaultImageModel : null;
  return model === null ? facts : { ...facts, model };
}

/**
 * Other names of the gateway's tools: vendors' tools that run at the vendor instead of the client, in all their dated
 * versions, and the plugins and request members that enable the same function.
 */
const OTHER_NAMES: Readonly<Record<string, { tool?: RegExp; plugin?: string; member?: string }>> = {
  'svc:web_search': { tool: /^web_search(?:_preview)?(?:_\d[\d_]*)?$/, plugin: 'web', member: 'web_search_options' },
  'svc:web_fetch': { tool: /^web_fetch(?:_\d[\d_]*)?$/, plugin: 'web-fetch' },
  'svc:image_generation': { tool: /^image_generation$/ },
  'svc:tool_search': { tool: /^tool_search(?:_tool_[a-z0-9]+)?(?:_\d[\d_]*)?$/ },
  'svc:fusion': { plugin: 'fusion' },
};

/** Throws GatewayError 403 for a conversation that names a server tool which its workspace has disabled. */
export function refuseDisabledTools({ workspace }: Caller, document: JsonDocument): void {
  const { disabledServerTools } = workspace;
  if (disabledServerTools.size === 0) return;
  const { structure } = document;
  const named = (list: unknown, member: string, path: (index: number) => string): [string, string][] =>
    Array.isArray(list)
      ? list.flatMap((each: unknown, index): [string, string][] => {
          const value = (each as Record<string, unknown> | null)?.[member];
          return typeof value === 'string' ? [[value, path(index)]] : [];
        })
      : [];
  const tools = named(structure['tools'], 'type', (index) => `tools[${index}].type`);
  const plugins = named(structure['plugins'], 'id', (index) => `plugins[${index}].id`);
  for (const disabled of disabledServerTools) {
    const other = OTHER_NAMES[disabled] ?? {};
    const [, path] =
      tools.find(([type]) => toWireName(type) === disabled || other.tool?.test(type)) ??
      plugins.find(([id]) => id === other.plugin) ??
      [];
    if (path !== undefined) throw switchedOff(disabled, path);
    const { member } = other;
    if (member !== undefined && (structure[member] ?? null) !== null) throw switchedOff(disabled, member);
  }
}

function switchedOff(tool: string, path: string): GatewayError {
  return new GatewayError('permission_denied', `${path} names ${tool}, which this workspace has disabled`, {
    path,
    metadata: { disabled_server_tool: tool },
  });
}
