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
  const named = (list: string, key: string, matches: (text: string) => boolean | undefined): string | undefined => {
    const index = listOf(request[list]).findIndex((each) => {
      const value = fieldsOf(each)[key];
      return typeof value === 'string' && matches(value);
    });
    return index === -1 ? undefined : `${list}[${index}].${key}`;
  };
  return (
    named('tools', 'type', (type) => toWireName(type) === name || vendorTypes?.test(type)) ??
    named('plugins', 'id', (id) => id === plugin) ??
    (member !== undefined && (request[member] ?? null) !== null ? member : undefined)
  );
}
