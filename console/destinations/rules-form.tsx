/** The filter rules of a destination: groups that must all match, each with rules of which all or one must match. */
import type { ApiDestinationFilterRules } from '../api.gen.ts';
import { Button } from '../ui/basics.tsx';
import { Choice, type Option, Text } from '../ui/forms.tsx';

export type Group = ApiDestinationFilterRules['groups'][number];
type Rule = Group['rules'][number];

const FIELDS: readonly Option[] = [
  ['model', 'Model'],
  ['provider', 'Provider'],
  ['api_key_name', 'Name of the key'],
  ['session_id', 'Session'],
  ['user_id', 'End user'],
  ['finish_reason', 'Finish reason'],
  ['input', 'Input'],
  ['output', 'Output'],
  ['total_cost', 'Cost in USD'],
  ['total_tokens', 'Tokens'],
  ['prompt_tokens', 'Prompt tokens'],
  ['completion_tokens', 'Completion tokens'],
];
const NUMBERS = new Set(['total_cost', 'total_tokens', 'prompt_tokens', 'completion_tokens']);
const EITHER: readonly Option[] = [
  ['equals', 'is'],
  ['not_equals', 'is not'],
];
const EXISTENCE: readonly Option[] = [
  ['exists', 'is present'],
  ['not_exists', 'is absent'],
];
const OF_TEXTS: readonly Option[] = [
  ...EITHER,
  ['contains', 'contains'],
  ['not_contains', 'does not contain'],
  ['starts_with', 'begins with'],
  ['ends_with', 'ends with'],
  ['regex', 'matches the pattern'],
  ...EXISTENCE,
];
const OF_NUMBERS: readonly Option[] = [
  ...EITHER,
  ['gt', 'is above'],
  ['gte', 'is at least'],
  ['lt', 'is below'],
  ['lte', 'is at most'],
  ...EXISTENCE,
];
const WITHOUT_VALUE = new Set(['exists', 'not_exists']);
const LOGICS: readonly Option[] = [
  ['and', 'all of these'],
  ['or', 'one of these'],
];
const NEW_RULE: Rule = { field: 'model', operator: 'equals', value: '' };

/** The rules as a sentence: "Model is a and Tokens is above 5". */
export function groupText({ logic, rules }: Group): string {
  const label = (options: readonly Option[], value: string) => options.find(([each]) => each === value)?.[1] ?? value;
  return rules
    .map(({ field, operator, value = '' }) =>
      `${label(FIELDS, field)} ${label([...OF_TEXTS, ...OF_NUMBERS], operator)} ${value}`.trim(),
    )
    .join(logic === 'or' ? ' or ' : ' and ');
}

export function RulesForm({ groups, onGroups }: { groups: readonly Group[]; onGroups(groups: Group[]): void }) {
  const change = (at: number, changes: Partial<Group>) =>
    onGroups(groups.map((group, place) => (place === at ? { ...group, ...changes } : group)));
  return (
    <fieldset class="rows">
      <legend>Rules, all of which must match</legend>
      {groups.map((group, at) => (
        <div key={at} class="rule-group">
          <div class="row">
            <Choice
              label={`Rule ${at + 1} matches if`}
              value={group.logic ?? 'and'}
              options={LOGICS}
              onChange={(logic) => change(at, { logic: logic as 'and' })}
            />
            <Button
              kind="quiet"
              icon="trash"
              label={`Remove rule ${at + 1}`}
              onClick={() => onGroups(groups.filter((_, place) => place !== at))}
            />
          </div>
          <Conditions place={at + 1} rules={group.rules} onRules={(rules) => change(at, { rules })} />
        </div>
      ))}
      <Button kind="quiet" icon="plus" onClick={() => onGroups([...groups, { logic: 'and', rules: [NEW_RULE] }])}>
        Add a rule
      </Button>
    </fieldset>
  );
}

interface ConditionsProps {
  /** Of their group. */
  place: number;
  rules: readonly Rule[];
  onRules(rules: Rule[]): void;
}

function Conditions({ place, rules, onRules }: ConditionsProps) {
  const change = (at: number, changes: Partial<Rule>) =>
    onRules(rules.map((rule, index) => (index === at ? { ...rule, ...changes } : rule)));
  return (
    <>
      {rules.map((rule, at) => (
        <Condition
          key={at}
          name={`${place}.${at + 1}`}
          rule={rule}
          onRule={(changes) => change(at, changes)}
          {...(rules.length > 1 && { onRemove: () => onRules(rules.filter((_, index) => index !== at)) })}
        />
      ))}
      <Button kind="quiet" icon="plus" onClick={() => onRules([...rules, NEW_RULE])}>
        Add a condition<span class="unseen"> to rule {place}</span>
      </Button>
    </>
  );
}

interface ConditionProps {
  name: string;
  rule: Rule;
  onRule(changes: Partial<Rule>): void;
  onRemove?: () => void;
}

function Condition({ name, rule: { field, operator, value }, onRule, onRemove }: ConditionProps) {
  const operators = NUMBERS.has(field) ? OF_NUMBERS : OF_TEXTS;
  return (
    <div class="row">
      <Choice
        label={`Field ${name}`}
        value={field}
        options={FIELDS}
        onChange={(next) => {
          const fits = NUMBERS.has(next) === NUMBERS.has(field);
          onRule({ field: next as Rule['field'], ...(!fits && { operator: 'equals' as const }) });
        }}
      />
      <Choice
        label={`Comparison ${name}`}
        value={operator}
        options={operators}
        onChange={(next) => onRule({ operator: next as Rule['operator'] })}
      />
      {!WITHOUT_VALUE.has(operator) && (
        <Text
          label={`Value ${name}`}
          type={NUMBERS.has(field) ? 'number' : 'text'}
          step="any"
          required
          value={String(value ?? '')}
          onInput={(next) => onRule({ value: next })}
        />
      )}
      {onRemove && <Button kind="quiet" icon="trash" label={`Remove condition ${name}`} onClick={onRemove} />}
    </div>
  );
}
