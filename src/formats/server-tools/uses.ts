/** Finds a server tool in a request, under any of its names. */
import { toWireName } from '../../base/namespace.ts';
import { fieldsOf, listOf } from '../conversation/fields.ts';
import { SERVER_TOOLS } from './server-tool.ts';

/**
 * The path at which a request uses a server tool: as a tool, its own or a vendor's; as a plugin; or as a request
 * member. Undefined if it does not.
 */
export function useOf(name: string, request: Readonly<Record<string, unknown>>): string | undefined {
  const { vendorTypes, plugin, member } = SERVER_TOOLS.find((tool) => tool.name === name) ?? {};
  const tool = listOf(request['tools']).findIndex((each) => {
    const { type } = fieldsOf(each);
    return typeof type === 'string' && (toWireName(type) === name || vendorTypes?.test(type));
  });
  if (tool !== -1) return `tools[${tool}].type`;
  return (
    (plugin === undefined ? undefined : pluginUse(plugin, request)) ??
    (member !== undefined && (request[member] ?? null) !== null ? member : undefined)
  );
}

function pluginUse(id: string, request: Readonly<Record<string, unknown>>): string | undefined {
  const index = listOf(request['plugins']).findIndex((each) => {
    const plugin = fieldsOf(each);
    return plugin['id'] === id && plugin['enabled'] !== false;
  });
  return index === -1 ? undefined : `plugins[${index}].id`;
}
