/** The dialog that creates or changes a guardrail. */
import { useState } from 'preact/hooks';
import type { ApiBuiltinFilterInput, ApiGuardrail, ApiPatternFilterInput } from '../api.gen.ts';
import { api, type Body } from '../api.ts';
import { RESETS } from '../keys/form.tsx';
import { useChange } from '../query.ts';
import { go, link } from '../route.ts';
import { useDifference } from '../ui/difference.ts';
import { Amount, Area, Check, Choice, Dialog, Form, type Option, Text } from '../ui/forms.tsx';
import { inWorkspace } from '../ui/workspace-choice.tsx';
import { RulesForm, rulesBody, rulesOf } from './rules-form.tsx';

const BUILTINS: readonly Option[] = [
  ['email', 'E-mail addresses'],
  ['phone', 'Phone numbers'],
  ['ssn', 'Social security numbers'],
  ['credit-card', 'Credit card numbers'],
  ['ip-address', 'IP addresses'],
  ['secrets', 'Secrets and keys'],
  ['regex-prompt-injection', 'Prompt injections'],
  ['person-name', 'Personal names'],
  ['address', 'Postal addresses'],
];
const ACTIONS: readonly Option[] = [
  ['', 'Ignore'],
  ['flag', 'Flag'],
  ['redact', 'Redact'],
  ['block', 'Block'],
];
const KEPT_ACTION: Option = ['', 'Unchanged; block new ones'];
interface EditGuardrailProps {
  guardrail?: ApiGuardrail;
  workspace?: string;
  onClose(): void;
}

export function EditGuardrail({ guardrail, workspace = '', onClose }: EditGuardrailProps) {
  // Replies have the values that requests accept, but their schema is looser.
  const knownBuiltins = (guardrail?.content_filter_builtins ?? []) as readonly ApiBuiltinFilterInput[];
  const knownPatterns = (guardrail?.content_filters ?? []) as readonly ApiPatternFilterInput[];
  const [name, setName] = useState(guardrail?.name ?? '');
  const [description, setDescription] = useState(guardrail?.description ?? '');
  const [builtins, setBuiltins] = useState<Readonly<Record<string, string>>>(
    Object.fromEntries(knownBuiltins.map(({ slug, action }) => [slug, action])),
  );
  /** Undefined: each filter keeps its own. */
  const [answers, setAnswers] = useState<boolean>();
  const [patterns, setPatterns] = useState(knownPatterns.map(({ pattern }) => pattern).join('\n'));
  /** Empty: each pattern keeps its own. */
  const [patternAction, setPatternAction] = useState(knownPatterns.length === 0 ? 'block' : '');
  const [rules, setRules] = useState(rulesOf(guardrail));
  const [limit, setLimit] = useState(guardrail?.limit_usd == null ? '' : String(guardrail.limit_usd));
  const [reset, setReset] = useState(guardrail?.reset_interval ?? 'monthly');
  const [byok, setByok] = useState(guardrail?.include_byok_in_budgets ?? false);
  const directions: { apply_to?: ('request' | 'response')[] } =
    answers === undefined ? {} : { apply_to: answers ? ['request', 'response'] : ['request'] };
  const body: Body<'PATCH /guardrails/{id}'> = {
    name,
    description: description || null,
    content_filter_builtins: Object.entries(builtins)
      .filter(([, action]) => action !== '')
      .map(([slug, action]) => {
        const known = knownBuiltins.find((each) => each.slug === slug);
        return { ...known, slug, action: action as 'block', ...directions };
      }),
    // A pattern may contain commas.
    content_filters: patterns
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((pattern) => {
        const known = knownPatterns.find((each) => each.pattern === pattern);
        return { ...known, pattern, action: (patternAction || known?.action || 'block') as 'block' };
      }),
    ...rulesBody(rules),
    limit_usd: limit === '' ? null : Number(limit),
    reset_interval: limit === '' ? null : ((reset || 'monthly') as 'monthly'),
    include_byok_in_budgets: byok,
  };
  const changed = useDifference(body, ['limit_usd', 'reset_interval']);
  const change = useChange(
    () =>
      guardrail === undefined
        ? api('POST /guardrails', { body: { ...body, name, ...inWorkspace(workspace) } })
        : api('PATCH /guardrails/{id}', { path: { id: guardrail.id }, body: changed }),
    ['GET /guardrails', 'GET /guardrails/{id}'],
    ({ data }) => (guardrail === undefined ? go(link(`/guardrails/${data.id}`)) : onClose()),
  );
  return (
    <Dialog title={guardrail === undefined ? 'Create a guardrail' : `Edit ${guardrail.name}`} wide onClose={onClose}>
      <Form submit={guardrail === undefined ? 'Create' : 'Save'} change={change} onCancel={onClose}>
        <div class="form-row">
          <Text label="Name" member="name" required value={name} onInput={setName} />
          <Text label="Description" member="description" value={description} onInput={setDescription} />
        </div>
        <h3>Text filters</h3>
        <div class="form-row">
          {BUILTINS.map(([slug, label]) => (
            <Choice
              key={slug}
              label={label}
              value={builtins[slug] ?? ''}
              options={ACTIONS}
              onChange={(action) => setBuiltins({ ...builtins, [slug]: action })}
            />
          ))}
        </div>
        <Check
          label="Also filter the answers of models"
          checked={answers ?? knownBuiltins.some(({ apply_to }) => apply_to?.includes('response'))}
          onChange={setAnswers}
        />
        <div class="form-row">
          <Area
            label="Patterns, one a line"
            member="content_filters"
            code
            rows={3}
            value={patterns}
            onInput={setPatterns}
            hint="RE2 regular expressions"
          />
          <Choice
            label="When a pattern matches"
            value={patternAction}
            options={knownPatterns.length === 0 ? ACTIONS.slice(1) : [KEPT_ACTION, ...ACTIONS.slice(1)]}
            onChange={setPatternAction}
          />
        </div>
        <RulesForm rules={rules} onRules={setRules} />
        <h3>Spend</h3>
        <div class="form-row">
          <Amount
            label="Limit in USD of each key or member"
            member="limit_usd"
            value={limit}
            onInput={setLimit}
            hint="Empty: none"
          />
          <Choice
            label="Limit resets"
            member="reset_interval"
            value={reset}
            options={RESETS.slice(1)}
            onChange={setReset}
          />
        </div>
        <Check label="The limit also counts spend on BYOK credentials" checked={byok} onChange={setByok} />
      </Form>
    </Dialog>
  );
}
