/** Reads the member `plugins` of a request: which plugins it asks for, each with valid settings. */
import Type from 'typebox';
import { invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../formats/conversation/fields.ts';
import { optional } from '../../formats/conversation/loose-schema.ts';
import { valueCheck } from '../../http/validate.ts';
import type { Plugin, RequestedPlugin } from './plugin.ts';
import { PLUGINS } from './registry.ts';

const BY_ID = new Map(PLUGINS.map((plugin) => [plugin.id, plugin]));
const checks = new Map<Plugin, (settings: Fields, path: string) => void>();

/**
 * Undefined if no plugin is enabled.
 * @throws GatewayError 400 with the field's path for a plugin that does not exist or is named twice, and for its settings
 */
export function requestedPlugins(document: JsonDocument): readonly RequestedPlugin[] | undefined {
  const requested: RequestedPlugin[] = [];
  const ids = new Set<string>();
  listOf(document.member('plugins')).forEach((value, index) => {
    const settings = fieldsOf(value);
    const path = `plugins[${index}]`;
    const id = textOf(settings['id']);
    if (ids.has(id)) throw invalidField(`${path}.id`, `names the plugin ${JSON.stringify(id)} a second time`);
    ids.add(id);
    const plugin = BY_ID.get(id);
    if (plugin === undefined) throw invalidField(`${path}.id`, refusal(id));
    checkOf(plugin)(settings, path);
    if (settings['enabled'] !== false) requested.push({ plugin, settings, path });
  });
  return requested.length === 0 ? undefined : sorted(requested);
}

function refusal(id: string): string {
  return `must be the id of a plugin, not ${JSON.stringify(id.slice(0, 100))}: ${[...BY_ID.keys()].join(', ')}`;
}

/** Plugins act in the order of the registry, however the client orders them. */
export function sorted(requested: readonly RequestedPlugin[]): readonly RequestedPlugin[] {
  if (requested.length === 1) return requested;
  return requested.toSorted((a, b) => PLUGINS.indexOf(a.plugin) - PLUGINS.indexOf(b.plugin));
}

/** The checks of a plugin's settings, compiled on first use. */
function checkOf(plugin: Plugin): (settings: Fields, path: string) => void {
  let check = checks.get(plugin);
  if (check === undefined) {
    const isValid = valueCheck(
      Type.Object({ id: Type.String(), enabled: optional(Type.Boolean()), ...plugin.parameters }),
    );
    check = (settings, path) => {
      isValid(settings, path);
      plugin.check?.(settings, path);
    };
    checks.set(plugin, check);
  }
  return check;
}
