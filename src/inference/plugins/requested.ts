/**
 * Reads the member `plugins` of a request: which plugins it asks for, each with valid settings; and `transforms`, an older name
 * of one plugin.
 */
import Type from 'typebox';
import { invalidField } from '../../base/errors.ts';
import type { JsonDocument } from '../../base/json.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../formats/conversation/fields.ts';
import { optional } from '../../formats/conversation/loose-schema.ts';
import type { FormatId } from '../../formats/conversation/registry.ts';
import { valueCheck } from '../../http/validate.ts';
import { contextCompression } from './context-compression/index.ts';
import type { Plugin, RequestedPlugin } from './plugin.ts';
import { PLUGINS } from './registry.ts';

const BY_ID = new Map(PLUGINS.map((plugin) => [plugin.id, plugin]));
/** Formats with the member `transforms`; in others it is a member that the gateway does not know. */
const WITH_TRANSFORMS: readonly (FormatId | undefined)[] = ['chat', 'responses'];
const MIDDLE_OUT = 'middle-out';

const checks = new Map<Plugin, (settings: Fields, path: string) => void>();

/**
 * Undefined if no plugin is enabled.
 * @param format of the request; undefined for settings that belong to no format
 * @throws GatewayError 400 with the field's path for a plugin or transform that does not exist, for a plugin that is named
 * twice, and for its settings
 */
export function requestedPlugins(document: JsonDocument, format?: FormatId): readonly RequestedPlugin[] | undefined {
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
  // An entry of `plugins` takes precedence, also one that is switched off.
  if (WITH_TRANSFORMS.includes(format) && compresses(document) && !ids.has(contextCompression.id)) {
    requested.push({ plugin: contextCompression, settings: {}, path: 'transforms' });
  }
  return requested.length === 0 ? undefined : sorted(requested);
}

/** Whether `transforms` asks for compression. An empty list asks for nothing. */
function compresses(document: JsonDocument): boolean {
  const transforms = listOf(document.member('transforms'));
  transforms.forEach((name, index) => {
    if (name !== MIDDLE_OUT) throw invalidField(`transforms[${index}]`, `must be '${MIDDLE_OUT}'`);
  });
  return transforms.length > 0;
}

function refusal(id: string): string {
  return `must be the id of a plugin, not ${JSON.stringify(id.slice(0, 100))}: ${[...BY_ID.keys()].join(', ')}`;
}

/** Plugins run in the order of the registry, however the client orders them. */
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
