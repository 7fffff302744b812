/** Which models, providers and endpoints a guardrail allows. */
import type { ApiGuardrail } from '../api.gen.ts';
import { REGIONS } from '../destinations/edit.tsx';
import { Area, Check } from '../ui/forms.tsx';
import { linesOrNull, textOf } from '../ui/lines.ts';

/** Lists, one entry a line. An empty list allows all, or ignores none. */
const LISTS = [
  ['allowed_models', 'Allowed models, one a line', 'Empty: all'],
  ['allowed_providers', 'Allowed providers, one a line', 'Empty: all'],
  ['ignored_models', 'Never these models, one a line', undefined],
  ['ignored_providers', 'Never these providers, one a line', undefined],
] as const;

/** Zero data retention, by the vendor of the model. */
export const RETENTION = [
  ['enforce_zdr_anthropic', 'Anthropic'],
  ['enforce_zdr_openai', 'OpenAI'],
  ['enforce_zdr_google', 'Google'],
  ['enforce_zdr_xai', 'xAI'],
  ['enforce_zdr_other', 'all other vendors'],
] as const;

/** What endpoints may do with prompts; `false` excludes them. */
export const USES = [
  ['enable_free_model_publication', 'free endpoints that publish prompts'],
  ['enable_free_model_training', 'free endpoints that train on prompts'],
  ['enable_paid_model_training', 'paid endpoints that train on prompts'],
  ['allow_safety_retention_google', 'safety retention at Google, where zero retention applies'],
  ['allow_safety_retention_other', 'safety retention at other vendors, where zero retention applies'],
] as const;

type List = (typeof LISTS)[number][0];
type Retained = (typeof RETENTION)[number][0];
type Use = (typeof USES)[number][0];

interface Rules {
  lists: Readonly<Record<List, string>>;
  retention: readonly Retained[];
  excluded: readonly Use[];
  /** Empty: all. */
  regions: readonly string[];
}

export function rulesOf(guardrail: ApiGuardrail | undefined): Rules {
  return {
    lists: Object.fromEntries(LISTS.map(([member]) => [member, textOf(guardrail?.[member])])) as Rules['lists'],
    retention: RETENTION.flatMap(([member]) => (guardrail?.[member] === true ? member : [])),
    excluded: USES.flatMap(([member]) => (guardrail?.[member] === false ? member : [])),
    regions: guardrail?.allowed_data_regions ?? [],
  };
}

/** Null leaves a rule to the account's configuration. */
export function rulesBody({ lists, retention, excluded, regions }: Rules) {
  const members = <M extends string, V>(names: readonly (readonly [M, ...unknown[]])[], value: (name: M) => V) =>
    Object.fromEntries(names.map(([name]) => [name, value(name)])) as Record<M, V>;
  return {
    ...members(LISTS, (name) => linesOrNull(lists[name])),
    ...members(RETENTION, (name) => (retention.includes(name) ? true : null)),
    ...members(USES, (name) => (excluded.includes(name) ? false : null)),
    // The older member for all vendors. With each of them named, it only shows what is set.
    enforce_zdr: retention.length === RETENTION.length || null,
    allowed_data_regions: regions.length === 0 ? null : ([...regions] as 'global'[]),
  };
}

const toggled = <T,>(list: readonly T[], item: T): T[] =>
  list.includes(item) ? list.filter((each) => each !== item) : [...list, item];

export function RulesForm({ rules, onRules }: { rules: Rules; onRules(rules: Rules): void }) {
  const set = (changes: Partial<Rules>) => onRules({ ...rules, ...changes });
  return (
    <>
      <h3>Models and providers</h3>
      <div class="form-row">
        {LISTS.map(([member, label, hint]) => (
          <Area
            key={member}
            label={label}
            member={member}
            code
            rows={3}
            value={rules.lists[member]}
            onInput={(text) => set({ lists: { ...rules.lists, [member]: text } })}
            hint={hint}
          />
        ))}
      </div>
      <h3>Data</h3>
      <div class="form-row">
        <fieldset class="checks">
          <legend>Only endpoints that keep no data (ZDR), for models of</legend>
          {RETENTION.map(([member, label]) => (
            <Check
              key={member}
              label={label}
              checked={rules.retention.includes(member)}
              onChange={() => set({ retention: toggled(rules.retention, member) })}
            />
          ))}
        </fieldset>
        <fieldset class="checks">
          <legend>Do not allow</legend>
          {USES.map(([member, label]) => (
            <Check
              key={member}
              label={label}
              checked={rules.excluded.includes(member)}
              onChange={() => set({ excluded: toggled(rules.excluded, member) })}
            />
          ))}
        </fieldset>
        <fieldset class="checks">
          <legend>Only in these regions (none checked: all)</legend>
          {REGIONS.map(([region, label]) => (
            <Check
              key={region}
              label={label}
              checked={rules.regions.includes(region)}
              onChange={() => set({ regions: toggled(rules.regions, region) })}
            />
          ))}
        </fieldset>
      </div>
    </>
  );
}
