/** What a preset keeps of a request: the members that are settings, and the system text. Pure. */
import { invalidField } from '../base/errors.ts';
import { type JsonDocument, stringifyJson } from '../base/json.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../formats/conversation/fields.ts';
import type { ServedFormat } from '../formats/conversation/format.ts';
import { textsOf } from '../formats/conversation/history.ts';
import { COMMON_MEMBERS, OWN_MEMBERS } from './members.ts';

/** Of `config` and system text together, in bytes of JSON. */
const MAX_BYTES = 128 * 1024;
const SYSTEM_ROLES = ['system', 'developer'];

export interface PresetContent {
  /** JSON of an object. */
  config: string;
  systemPrompt: string | null;
}

/**
 * @param document valid by the format's schema, with every member optional
 * @throws GatewayError 400 for settings that the format refuses, that hold a secret or are too large
 */
export function contentOf(format: ServedFormat, document: JsonDocument): PresetContent {
  const body = document.exact;
  if ((body['preset'] ?? null) !== null) throw invalidField('preset', NESTED);
  const kept = [...COMMON_MEMBERS, ...OWN_MEMBERS[format.id]!];
  // Clients write the default tier into every request.
  const isUnset = (name: string) => (body[name] ?? null) === null || (name === 'service_tier' && body[name] === 'auto');
  const config: Fields = Object.fromEntries(kept.filter((name) => !isUnset(name)).map((name) => [name, body[name]]));
  checkConfig(format, config);
  const systemPrompt = systemTextOf(format, body);
  const text = stringifyJson(config);
  if (Buffer.byteLength(text) + Buffer.byteLength(systemPrompt ?? '') > MAX_BYTES) {
    throw invalidField('', `has more than ${MAX_BYTES} bytes of settings and system text`);
  }
  return { config: text, systemPrompt };
}

const NESTED = 'must not name a preset: a preset cannot use another one';
const MESSAGE = [{ role: 'user', content: 'x' }];

function checkConfig(format: ServedFormat, config: Fields): void {
  const { model } = config;
  if (typeof model === 'string' && model.includes('@preset/')) {
    throw invalidField('model', NESTED);
  }
  format.check({ model: 'x', ...config, messages: MESSAGE, input: 'x' }, true);
  listOf(config['tools']).forEach((tool, index) => {
    for (const name of ['authorization', 'authorization_token', 'headers']) {
      if ((fieldsOf(tool)[name] ?? null) !== null) {
        throw invalidField(`tools[${index}].${name}`, 'must be absent: a preset holds no secrets');
      }
    }
  });
  const { cache_enabled: enabled, cache_ttl_seconds: ttl } = config;
  if (enabled !== undefined && typeof enabled !== 'boolean') throw invalidField('cache_enabled', 'must be a boolean');
  if (ttl !== undefined && !(Number.isInteger(ttl) && (ttl as number) >= 1 && (ttl as number) <= 86_400)) {
    throw invalidField('cache_ttl_seconds', 'must be an integer from 1 to 86400');
  }
}

/** The text that the request begins with, in each format's own place. */
function systemTextOf(format: ServedFormat, body: Fields): string | null {
  const { instructions, root } = format.history;
  const texts = instructions ? instructions.read(body[instructions.member(body)]) : leadingTexts(body[root]);
  const text = texts.join('\n\n');
  return text === '' ? null : text;
}

function leadingTexts(messages: unknown): string[] {
  const list = listOf(messages).map(fieldsOf);
  const end = list.findIndex(({ role }) => !SYSTEM_ROLES.includes(textOf(role)));
  return list.slice(0, end === -1 ? list.length : end).flatMap(({ content }) => textsOf(content));
}

/** Whether the request brings a system text of its own. */
export function hasSystemText(format: ServedFormat, { structure }: JsonDocument): boolean {
  const { instructions, root } = format.history;
  if (instructions !== undefined) return (structure[instructions.member(structure)] ?? null) !== null;
  return SYSTEM_ROLES.includes(textOf(fieldsOf(listOf(structure[root])[0])['role']));
}
