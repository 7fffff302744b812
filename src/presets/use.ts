/** Requests that name a preset: its settings become members of the request, before anything judges the request. */
import type { Caller, PresetTerms } from '../access/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { type JsonDocument, readDocument, stringifyJson } from '../base/json.ts';
import { applyEdits, type Edit } from '../base/json-edits.ts';
import { type Fields, fieldsOf } from '../formats/conversation/fields.ts';
import type { ServedFormat } from '../formats/conversation/format.ts';
import { camelCase } from '../formats/gemini/index.ts';
import { documentCheck } from '../http/validate.ts';
import { hasSystemText } from './config.ts';
import { ALTERNATIVES, MERGED, OUTPUT_SETTINGS, translated } from './members.ts';

const MARK = '@preset/';

/** Whether a model's name asks for a preset. */
export function namesPreset(model: string): boolean {
  return model.includes(MARK);
}

interface PresetUse {
  /** UUID of the preset. */
  id: string;
  /** The request with the preset's settings, valid by the format's schema. */
  document: JsonDocument;
  /** The preset's settings of the response cache; undefined: none. */
  cacheEnabled: boolean | undefined;
  cacheTtlSeconds: number | undefined;
}

/**
 * Undefined for a request without a preset, the usual case.
 * @throws GatewayError 404 with the path of `model` or `preset` for a preset that the caller's workspace does not have,
 * 400 where the merged request is not valid
 */
export function applyPreset(format: ServedFormat, document: JsonDocument, caller: Caller): PresetUse | undefined {
  const { model, preset = null } = document.structure;
  const isInModel = typeof model === 'string' && namesPreset(model);
  if (!isInModel && preset === null) return undefined;
  const named = namedBy(document, isInModel);
  const found = caller.workspace.presets.get(named.slug);
  if (found === undefined) {
    const problem = `${named.path} names a preset that this workspace does not have`;
    throw new GatewayError('not_found', problem, { path: named.path });
  }
  const config = configFor(found, format);
  const edits = settingEdits(config, document, named.model);
  if (found.systemPrompt !== null && !hasSystemText(format, document)) {
    edits.push(systemEdit(format, found.systemPrompt, document));
  }
  const merged = readDocument(applyEdits(document, edits));
  checkMerged(format, merged);
  return {
    id: found.id,
    document: merged,
    cacheEnabled: config['cache_enabled'] as boolean | undefined,
    cacheTtlSeconds: config['cache_ttl_seconds'] as number | undefined,
  };
}

/** @returns `model`: what the request says besides the preset */
function namedBy(document: JsonDocument, isInModel: boolean): { slug: string; path: string; model: unknown } {
  const model = document.member('model');
  const slug = document.member('preset') ?? undefined;
  if (slug !== undefined && typeof slug !== 'string') throw invalidField('preset', 'must be a text');
  if (!isInModel) return { slug: slug!, path: 'preset', model };
  const at = (model as string).lastIndexOf(MARK);
  const inModel = (model as string).slice(at + MARK.length);
  if (slug !== undefined && slug !== inModel) throw invalidField('preset', 'names another preset than model');
  return { slug: inModel, path: 'model', model: (model as string).slice(0, at) };
}

/** Members of the request override those of the preset. */
function settingEdits(config: Fields, document: JsonDocument, model: unknown): Edit[] {
  const given = new Set(document.members.map(({ key }) => key));
  for (const names of ALTERNATIVES)
    if (names.some((name) => given.has(name))) for (const name of names) given.add(name);
  const { model: own, cache_enabled: _, cache_ttl_seconds: __, ...settings } = config;
  const wanted = typeof model === 'string' && model !== '' ? model : own;
  const edits: Edit[] = [
    { key: 'preset', json: undefined },
    { key: 'model', json: wanted === undefined ? undefined : stringifyJson(wanted) },
  ];
  for (const [key, value] of Object.entries(settings)) {
    if (!given.has(key)) edits.push({ key, json: stringifyJson(value) });
    else if (MERGED.has(key)) edits.push(mergedEdit(document, key, fieldsOf(value)));
  }
  return edits;
}

/**
 * Merges a member that holds settings: each one of the request, in either spelling, overrides the preset's, which is in
 * camelCase.
 */
function mergedEdit({ exact, members }: JsonDocument, name: string, preset: Fields): Edit {
  const [own = name] = ALTERNATIVES.find((names) => names.includes(name)) ?? [];
  const key = members.find((member) => member.key === name)?.key ?? own;
  const given = fieldsOf(exact[key]);
  const overridden = new Set(Object.keys(given).map(camelCase));
  if (OUTPUT_SETTINGS.some((each) => overridden.has(each))) for (const each of OUTPUT_SETTINGS) overridden.add(each);
  const kept = Object.entries(preset).filter(([setting]) => !overridden.has(setting));
  return { key, json: stringifyJson({ ...Object.fromEntries(kept), ...given }) };
}

/** A request without a system text of its own gets the preset's. */
function systemEdit(format: ServedFormat, text: string, { bytes, members, structure }: JsonDocument): Edit {
  const { instructions, root } = format.history;
  if (instructions)
    return { key: instructions.member(structure), json: JSON.stringify(instructions.with(undefined, text)) };
  const { valueStart, valueEnd } = members.find(({ key }) => key === root)!;
  const messages = bytes.toString('utf8', valueStart + 1, valueEnd);
  return { key: root, json: `[{"role":"system","content":${JSON.stringify(text)}},${messages}` };
}

const translations = new WeakMap<PresetTerms, Map<string, Fields>>();

function configFor(preset: PresetTerms, format: ServedFormat): Fields {
  const byFormat = translations.get(preset) ?? new Map<string, Fields>();
  translations.set(preset, byFormat);
  let config = byFormat.get(format.id);
  if (config === undefined) {
    config = translated(preset.config, preset.format, format.id);
    byFormat.set(format.id, config);
  }
  return config;
}

const checks = new Map<string, (document: JsonDocument) => void>();

function checkMerged({ id, schema }: ServedFormat, merged: JsonDocument): void {
  let check = checks.get(id);
  if (check === undefined) {
    check = documentCheck(schema);
    checks.set(id, check);
  }
  check(merged);
}
