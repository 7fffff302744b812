/**
 * Server tools: tools that the gateway runs for the model. Each has a row. Tools that are not built yet have one too:
 * they are refused by name, never ignored, and workspaces can disable them already. The change that adds a tool sets
 * `built` here ([guide](../../../docs/guides/server-tools.md#add-a-tool)).
 */
import { WIRE_NAME } from '../../base/namespace.ts';
import type { FormatId } from '../conversation/conversation.ts';

export interface ServerTool {
  /** The wire name; clients may use the alias prefix too (`base/namespace.ts`). */
  readonly name: `svc:${string}`;
  readonly built: boolean;
  /** Whether a workspace can disable it. */
  readonly canDisable: boolean;
  /**
   * Types of vendors' tools for the same purpose, in all their dated versions. They run at the vendor and pass
   * unchanged, but a workspace that disables the server tool disables them too.
   */
  readonly vendorTypes?: RegExp;
  /** Google's tools for the same purpose: members of a tool without a type, in camelCase. */
  readonly vendorMembers?: readonly string[];
  /**
   * Those of the vendors' types that are this server tool in a format that takes shorthands (`FeatureRules`): no
   * upstream of that format runs a tool of such a type, so that it can only be meant for the gateway.
   */
  readonly shorthands?: RegExp;
  /**
   * The type that a format's vendor has for this tool, which the gateway runs for any model. Other declarations are left
   * to the vendor.
   */
  readonly also?: {
    readonly format: FormatId;
    readonly type: string;
    isOurs(declaration: Readonly<Record<string, unknown>>): boolean;
  };
  /** Id of the plugin that does the same for any model. */
  readonly plugin?: string;
  /** A request member that asks a vendor for the same. */
  readonly member?: string;
}

export const SERVER_TOOLS: readonly ServerTool[] = [
  { name: 'svc:advisor', built: true, canDisable: true },
  { name: 'svc:apply_patch', built: true, canDisable: true },
  { name: 'svc:bash', built: true, canDisable: true },
  {
    name: 'svc:code_interpreter',
    built: true,
    canDisable: true,
    vendorTypes: /^code_(?:interpreter|execution(?:_\d+)?)$/,
    vendorMembers: ['codeExecution'],
  },
  { name: 'svc:datetime', built: true, canDisable: true },
  {
    name: 'svc:file_search',
    built: true,
    canDisable: true,
    vendorTypes: /^file_search$/,
    vendorMembers: ['fileSearch'],
    also: { format: 'responses', type: 'file_search', isOurs: ({ vector_store_ids: ids }) => namesOwnStore(ids) },
  },
  { name: 'svc:files', built: true, canDisable: false },
  { name: 'svc:fusion', built: true, canDisable: true, plugin: 'fusion' },
  { name: 'svc:image_generation', built: true, canDisable: true, vendorTypes: /^image_generation$/ },
  {
    name: 'svc:mcp',
    built: true,
    canDisable: true,
    vendorTypes: /^mcp(?:_toolset)?(?:_\d[\d_]*)?$/,
    vendorMembers: ['mcpServers'],
    also: { format: 'responses', type: 'mcp', isOurs: ({ connector_id: id }) => (id ?? null) === null },
    member: 'mcp_servers',
  },
  { name: 'svc:memory', built: true, canDisable: true, vendorTypes: /^memory_\d+$/ },
  { name: 'svc:experimental__search_models', built: true, canDisable: true },
  { name: 'svc:shell', built: true, canDisable: true },
  { name: 'svc:subagent', built: true, canDisable: true },
  {
    name: 'svc:text_editor',
    built: true,
    canDisable: true,
    vendorTypes: /^text_editor_\d+$/,
  },
  {
    name: 'svc:tool_search',
    built: true,
    canDisable: true,
    vendorTypes: /^tool_search(?:_tool_[a-z0-9]+)?(?:_\d[\d_]*)?$/,
  },
  {
    name: 'svc:web_fetch',
    built: true,
    canDisable: true,
    vendorTypes: /^(?:web_fetch(?:_\d[\d_]*)?|url_context)$/,
    vendorMembers: ['urlContext'],
    plugin: 'web-fetch',
  },
  {
    name: 'svc:web_search',
    built: true,
    canDisable: true,
    vendorTypes: /^(?:web_search(?:_preview)?(?:_\d[\d_]*)?|(?:google|enterprise_web)_search(?:_retrieval)?)$/,
    vendorMembers: ['googleSearch', 'googleSearchRetrieval', 'enterpriseWebSearch'],
    shorthands: /^web_search(?:_preview)?(?:_\d{4}_\d\d_\d\d)?$/,
    plugin: 'web',
    member: 'web_search_options',
  },
];

/** Ids of vector stores tell whose they are. */
function namesOwnStore(ids: unknown): boolean {
  return Array.isArray(ids) && ids.some((id) => typeof id === 'string' && id.startsWith(`${WIRE_NAME}_vs_`));
}

/** Names that a workspace can disable. */
export const DISABLEABLE: readonly string[] = SERVER_TOOLS.filter(({ canDisable }) => canDisable).map(
  ({ name }) => name,
);
