/**
 * The `guardrails` of a configuration of LiteLLM's proxy as filters. Pure. Every part of a guardrail that is left out, or taken
 * over in another form, is a finding.
 */
import { LineCounter } from 'yaml';
import type { BuiltinFilter, FilterAction, FilterDirection, PatternFilter } from '../../guardrails/index.ts';
import { Findings, type Path } from './findings.ts';
import { ImportError, parsed } from './litellm.ts';
import { patternOf, wordsOf } from './patterns.ts';
import { isMembers, type Json, type Members, variableOf } from './values.ts';

export interface PatternDraft extends PatternFilter {
  readonly appliesTo: readonly FilterDirection[];
  /** In the imported file. */
  readonly path: Path;
}

export interface GuardrailDraft {
  name: string;
  /** It applies to every request. */
  isDefault: boolean;
  builtins: readonly BuiltinFilter[];
  patterns: readonly PatternDraft[];
  path: Path;
}

/** @throws ImportError for a file that is no configuration */
export function readGuardrails(text: string): { guardrails: GuardrailDraft[]; findings: Findings } {
  const lines = new LineCounter();
  const document = parsed(text, lines);
  const findings = new Findings(document, lines);
  const content: unknown = document.toJS({ maxAliasCount: 100 });
  const list = isMembers(content) ? (content['guardrails'] ?? []) : undefined;
  if (!Array.isArray(list)) throw new ImportError('guardrails is not a list');
  if (list.length > MOST) throw new ImportError(`guardrails has more than ${MOST} entries`);
  const guardrails = list.flatMap((entry, index) => guardrailOf(entry, ['guardrails', index], findings));
  const names = new Set<string>();
  for (const { name, path } of guardrails) {
    // LiteLLM runs both; here names are unique.
    if (names.has(name)) throw new ImportError(`guardrails[${path[1]}].guardrail_name is used twice`);
    names.add(name);
  }
  return { guardrails, findings };
}

const MOST = 1_000;

/** What a guardrail's own reader gets: its parameters without those that every guardrail has. */
interface Reading {
  params: Members;
  at: Path;
  /** By `mode`; never empty. */
  directions: readonly FilterDirection[];
  findings: Findings;
}
type Filters = Pick<GuardrailDraft, 'builtins' | 'patterns'>;

const READERS: Readonly<Record<string, (reading: Reading) => Filters>> = {
  presidio,
  litellm_content_filter: contentFilter,
  'hide-secrets': (reading) => {
    listOthers(reading, []);
    reading.findings.differs(reading.at, 'is the built-in filter secrets, which has rules and labels of its own');
    return { builtins: [{ slug: 'secrets', action: 'redact', appliesTo: reading.directions }], patterns: [] };
  },
};

const REASONS: Readonly<Record<string, string>> = {
  openai_moderation:
    'is not imported: moderation is the plugin of that name, which requests name (docs/guides/plugins.md#moderation)',
  tool_permission: 'is not imported: workspaces disable tools (docs/guides/workspaces.md)',
};

function guardrailOf(entry: Json, at: Path, findings: Findings): GuardrailDraft[] {
  const { guardrail_name: name = null, litellm_params: params = null, ...others } = isMembers(entry) ? entry : {};
  if (typeof name !== 'string' || name.trim() === '' || name.length > 200 || !isMembers(params)) {
    findings.lacks(at, 'has no guardrail_name or no litellm_params; not imported');
    return [];
  }
  const path = [...at, 'litellm_params'];
  const { guardrail: kind = null, mode = null, default_on: isDefault = false, ...own } = params;
  const read = typeof kind === 'string' && Object.hasOwn(READERS, kind) ? READERS[kind] : undefined;
  if (read === undefined) {
    const reason = typeof kind === 'string' && Object.hasOwn(REASONS, kind) ? REASONS[kind]! : undefined;
    findings.lacks([...path, 'guardrail'], reason ?? 'is not imported: the gateway has no filter of this kind');
    return [];
  }
  if (typeof isDefault !== 'boolean') {
    findings.lacks([...path, 'default_on'], 'is neither true nor false; the guardrail is not imported');
    return [];
  }
  const directions = directionsOf(mode, [...path, 'mode'], findings);
  if (directions === undefined) return [];
  for (const [member, value] of Object.entries(others)) {
    if (value !== null && member !== 'guardrail_info' && member !== 'guardrail_id')
      findings.lacks([...at, member], 'has no counterpart');
  }
  const filters = read({ params: own, at: path, directions, findings });
  if (filters.builtins.length + filters.patterns.length === 0) {
    findings.lacks(at, 'has nothing that can be imported; not imported');
    return [];
  }
  return [{ name: name.trim(), isDefault, ...filters, path: at }];
}

const DIRECTIONS: Readonly<Record<string, FilterDirection>> = {
  pre_call: 'request',
  during_call: 'request',
  post_call: 'response',
};

/** Undefined: not understood, or at no time that the gateway knows; then it is a finding. */
function directionsOf(mode: Json, at: Path, findings: Findings): readonly FilterDirection[] | undefined {
  const modes = Array.isArray(mode) ? mode : [mode];
  const directions = new Set<FilterDirection>();
  for (const [index, each] of modes.entries()) {
    const direction = typeof each === 'string' && Object.hasOwn(DIRECTIONS, each) ? DIRECTIONS[each] : undefined;
    if (direction !== undefined) directions.add(direction);
    else
      findings.lacks(
        Array.isArray(mode) ? [...at, index] : at,
        'has no counterpart: filters check requests and answers',
      );
  }
  if (directions.size > 0) return [...directions].sort();
  findings.lacks(at.slice(0, -2), 'is not imported: it checks neither requests nor answers');
  return undefined;
}

/** Lists parameters that the reader does not know. */
function listOthers({ params, at, findings }: Reading, known: readonly string[]): void {
  for (const [member, value] of Object.entries(params)) {
    if (value !== null && value !== false && !known.includes(member))
      findings.lacks([...at, member], 'has no counterpart');
  }
}

const ACTIONS: Readonly<Record<string, FilterAction>> = { MASK: 'redact', BLOCK: 'block' };

/** Undefined for anything else; then it is a finding. */
function actionOf(action: Json | undefined, at: Path, findings: Findings): FilterAction | undefined {
  const found = typeof action === 'string' && Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (found === undefined) findings.lacks(at, 'is neither BLOCK nor MASK; not imported');
  return found;
}

const ENTITIES: Readonly<Record<string, string>> = {
  EMAIL_ADDRESS: 'email',
  PHONE_NUMBER: 'phone',
  US_SSN: 'ssn',
  CREDIT_CARD: 'credit-card',
  IP_ADDRESS: 'ip-address',
  PERSON: 'person-name',
};
const ENTITY_REASONS: Readonly<Record<string, string>> = {
  LOCATION: 'is not imported: the built-in filter address finds postal addresses only, no other places',
};

function presidio(reading: Reading): Filters {
  const { params, at, findings } = reading;
  listOthers(reading, [
    'pii_entities_config',
    'presidio_analyzer_api_base',
    'presidio_anonymizer_api_base',
    'presidio_language',
    'presidio_filter_scope',
    'output_parse_pii',
  ]);
  const scope = params['presidio_filter_scope'] ?? 'both';
  const appliesTo = scopeOf(scope, reading.directions);
  if (appliesTo === undefined) {
    findings.lacks(
      [...at, 'presidio_filter_scope'],
      'is neither input, output nor both; the guardrail is not imported',
    );
    return { builtins: [], patterns: [] };
  }
  if (params['output_parse_pii'] === true)
    findings.differs([...at, 'output_parse_pii'], 'has no counterpart: answers keep the labels');
  const given = params['pii_entities_config'] ?? null;
  const path = [...at, 'pii_entities_config'];
  if (given !== null && !isMembers(given)) {
    findings.lacks(path, 'is not a mapping of entities to actions; the guardrail is not imported');
    return { builtins: [], patterns: [] };
  }
  const entities = isMembers(given) && Object.keys(given).length > 0 ? given : undefined;
  if (entities === undefined)
    findings.lacks(at, `masks every entity that Presidio knows: only ${Object.keys(ENTITIES).join(', ')} are imported`);
  const all = entities ?? Object.fromEntries(Object.keys(ENTITIES).map((entity) => [entity, 'MASK']));
  const builtins = Object.entries(all).flatMap(([entity, given]): BuiltinFilter[] => {
    const slug = Object.hasOwn(ENTITIES, entity) ? ENTITIES[entity] : undefined;
    if (slug === undefined) {
      findings.lacks([...path, entity], ENTITY_REASONS[entity] ?? 'is not imported: no built-in filter finds it');
      return [];
    }
    const action = actionOf(given, [...path, entity], findings);
    return action === undefined ? [] : [{ slug, action, appliesTo }];
  });
  if (builtins.length > 0)
    findings.differs(at, "is built-in filters instead of Presidio's: they find other texts and write other labels");
  return { builtins, patterns: [] };
}

/** Presidio also checks answers unless its scope is `input`, whatever the mode. */
function scopeOf(scope: Json, directions: readonly FilterDirection[]): readonly FilterDirection[] | undefined {
  if (scope === 'input') return directions;
  if (scope === 'output') return ['response'];
  return scope === 'both' ? [...new Set([...directions, 'response' as const])] : undefined;
}

const PREBUILT: Readonly<Record<string, string>> = {
  email: 'email',
  us_phone: 'phone',
  us_ssn: 'ssn',
  visa: 'credit-card',
  mastercard: 'credit-card',
  amex: 'credit-card',
  discover: 'credit-card',
  credit_card: 'credit-card',
  ipv4: 'ip-address',
  ipv6: 'ip-address',
  aws_access_key: 'secrets',
  github_token: 'secrets',
  slack_token: 'secrets',
  generic_api_key: 'secrets',
};

function contentFilter(reading: Reading): Filters {
  const { params, at, directions, findings } = reading;
  listOthers(reading, ['patterns', 'blocked_words', 'pattern_redaction_format', 'keyword_redaction_tag']);
  const builtins: BuiltinFilter[] = [];
  const patterns: PatternDraft[] = [];
  for (const [index, pattern] of listOf(params['patterns'], [...at, 'patterns'], findings).entries()) {
    const path = [...at, 'patterns', index];
    const entry = isMembers(pattern) ? pattern : {};
    const action = actionOf(entry['action'], [...path, 'action'], findings);
    if (action === undefined) continue;
    if (entry['pattern_type'] === 'regex') {
      const found = patternOf(entry, { format: params['pattern_redaction_format'] ?? null, path, findings });
      if (found !== undefined) patterns.push({ ...found, action, appliesTo: directions, path });
      continue;
    }
    const name = entry['pattern_type'] === 'prebuilt' ? entry['pattern_name'] : undefined;
    const slug = typeof name === 'string' && Object.hasOwn(PREBUILT, name) ? PREBUILT[name] : undefined;
    if (slug === undefined) {
      findings.lacks(path, 'is not imported: no built-in filter finds the same');
      continue;
    }
    findings.differs(path, `is the built-in filter ${slug}, which has rules and a label of its own`);
    builtins.push({ slug, action, appliesTo: directions });
  }
  const words = listOf(params['blocked_words'], [...at, 'blocked_words'], findings).flatMap((word, index) => {
    const path = [...at, 'blocked_words', index];
    const { keyword = null, action } = isMembers(word) ? word : {};
    if (typeof keyword !== 'string' || keyword.trim() === '' || keyword.includes('*') || variableOf(keyword)) {
      findings.lacks([...path, 'keyword'], 'is not a plain text; not imported');
      return [];
    }
    const known = actionOf(action, [...path, 'action'], findings);
    return known === undefined ? [] : [{ keyword, action: known }];
  });
  const tag = params['keyword_redaction_tag'] ?? '[KEYWORD_REDACTED]';
  const label = typeof tag === 'string' && tag !== '' && tag.length <= 100 ? tag : null;
  if (label === null) findings.differs([...at, 'keyword_redaction_tag'], 'cannot be a label: [REDACTED] is');
  const path = [...at, 'blocked_words'];
  return {
    builtins,
    patterns: [...patterns, ...wordsOf(words, label).map((each) => ({ ...each, appliesTo: directions, path }))],
  };
}

function listOf(value: Json | undefined, at: Path, findings: Findings): Json[] {
  if (Array.isArray(value)) return value;
  if (value !== undefined && value !== null) findings.lacks(at, 'is not a list; not imported');
  return [];
}
