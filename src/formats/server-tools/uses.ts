/** Finds a server tool in a request, under any of its names. */
import { toWireName } from '../../base/namespace.ts';
import { fieldsOf, listOf } from '../conversation/fields.ts';
import { SERVER_TOOLS } from './server-tool.ts';

/**
 * The path at which a request uses a server tool: as a tool, its own or a vendor's; as a plugin; or as a request
 * member. Undefined if it does not.
 */
export function useOf(name: string, request: Readonly<Record<string, unknown>>): string | undefined {
  const { vendorTypes, vendorMembers, plugin, member } = SERVER_TOOLS.find((tool) => tool.name === name) ?? {};
  const { tools } = request;
  const tool = toolUse(name, vendorTypes, tools, 'tools') ?? memberUse(vendorMembers, tools);
  if (tool !== undefined) return tool;
  return (
    (plugin === undefined ? undefined : pluginUse(plugin, request)) ??
    (member !== undefined && (request[member] ?? null) !== null ? member : undefined)
  );
}

/** Tools may have tools of their own, in their parameters. */
function toolUse(name: string, vendorTypes: RegExp | undefined, tools: unknown, path: string): string | undefined {
  for (const [index, each] of listOf(tools).entries()) {
    const { type, parameters } = fieldsOf(each);
    if (typeof type !== 'string') continue;
    if (toWireName(type) === name || vendorTypes?.test(type)) return `${path}[${index}].type`;
    if (type === 'function' || type === 'custom') continue;
    const inner = toolUse(name, vendorTypes, fieldsOf(parameters)['tools'], `${path}[${index}].parameters.tools`);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

function memberUse(members: readonly string[] = [], tools: unknown): string | undefined {
  for (const [index, each] of members.length === 0 ? [] : listOf(tools).entries()) {
    const used = Object.keys(fieldsOf(each)).find((name) => members.includes(camelCased(name)));
    if (used !== undefined) return `tools[${index}].${used}`;
  }
  return undefined;
}

export function camelCased(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function pluginUse(id: string, request: Readonly<Record<string, unknown>>): string | undefined {
  const index = listOf(request['plugins']).findIndex((each) => {
    const plugin = fieldsOf(each);
    return plugin['id'] === id && plugin['enabled'] !== false;
  });
  return index === -1 ? undefined : `plugins[${index}].id`;
}
