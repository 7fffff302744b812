/** Guardrails: what they allow and filter, whom they apply to, and a box to test a text. */
import { useState } from 'preact/hooks';
import type { ApiGuardrail } from '../api.gen.ts';
import { api } from '../api.ts';
import type { PageParts } from '../frame.tsx';
import { KeyAssignments, MemberAssignments } from '../guardrails/assignments.tsx';
import { EditGuardrail } from '../guardrails/edit.tsx';
import { RETENTION, USES } from '../guardrails/rules-form.tsx';
import { useApi, useChange } from '../query.ts';
import { go, link, useParams } from '../route.ts';
import { Badge, Button, Card, Empty, Facts, Page, Problem, type Tone, Waiting } from '../ui/basics.tsx';
import { usd } from '../ui/format.ts';
import { Area, Confirm, Form } from '../ui/forms.tsx';
import { ItemActions } from '../ui/item-actions.tsx';
import { PagedList, useOffset } from '../ui/list.tsx';
import { inWorkspace, WorkspaceChoice } from '../ui/workspace-choice.tsx';

const PAGE = 50;
const ACTION_TONES: Readonly<Record<string, Tone>> = { block: 'bad', redact: 'warn', flag: 'info' };

export function Guardrails({ rest }: PageParts) {
  return rest === '' ? <GuardrailTable /> : <GuardrailDetail key={rest} id={rest} />;
}

function GuardrailTable() {
  const { params, set } = useParams();
  const offset = useOffset();
  const workspace = params.get('workspace') ?? '';
  const reading = useApi('GET /guardrails', {
    query: { offset, limit: PAGE, ...inWorkspace(workspace) },
  });
  return (
    <Page
      title="Guardrails"
      about="What keys and members may ask, and which texts are flagged, redacted or blocked."
      actions={
        <Button kind="main" icon="plus" onClick={() => set({ new: 'guardrail' })}>
          Create a guardrail
        </Button>
      }
    >
      <search class="filters">
        <WorkspaceChoice value={workspace} onChange={(value) => set({ workspace: value }, true)} />
      </search>
      <PagedList
        reading={reading}
        rows={reading.data?.data}
        empty={
          <Empty icon="guardrails" title="No guardrails">
            <p>Create one to limit models and spend, or to block texts, and assign it to keys and members.</p>
          </Empty>
        }
        pages={{ size: PAGE, total: reading.data?.total_count }}
        label="Guardrails"
        keyOf={({ id }) => id}
        linkOf={({ id }) => link(`/guardrails/${id}`)}
        columns={[
          { head: 'Name', cell: (each) => <span class="clip">{each.name}</span> },
          { head: 'Filters', cell: (each) => <FilterBadges item={each} /> },
          {
            head: 'Models',
            minor: true,
            cell: (each) =>
              each.allowed_models === null ? <span class="soft">all</span> : `${each.allowed_models.length} allowed`,
          },
          {
            head: 'Limit',
            end: true,
            cell: (each) =>
              each.limit_usd === null ? (
                <span class="soft">none</span>
              ) : (
                `${usd(each.limit_usd)} ${each.reset_interval ?? ''}`
              ),
          },
        ]}
      />
      {params.get('new') === 'guardrail' && (
        <EditGuardrail workspace={workspace} onClose={() => set({ new: undefined }, true)} />
      )}
    </Page>
  );
}

function namesOf<Member>(
  rules: readonly (readonly [Member, string])[],
  holds: (member: Member) => boolean,
): string | undefined {
  const names = rules.flatMap(([member, name]) => (holds(member) ? name : []));
  return names.length === 0 ? undefined : names.join(', ');
}

function filtersOf({ content_filter_builtins, content_filters }: ApiGuardrail) {
  const builtins = (content_filter_builtins ?? []).map(({ slug, action }) => ({ name: slug, action }));
  return [...builtins, ...(content_filters ?? []).map(({ pattern, action }) => ({ name: pattern, action }))];
}

function FilterBadges({ item }: { item: ApiGuardrail }) {
  const filters = filtersOf(item);
  if (filters.length === 0) return <span class="soft">none</span>;
  return (
    <span class="badges">
      {filters.map(({ name, action }) => (
        <Badge key={name} tone={ACTION_TONES[action] ?? 'plain'}>
          {action} {name}
        </Badge>
      ))}
    </span>
  );
}

function GuardrailDetail({ id }: { id: string }) {
  const { data, error, refetch } = useApi('GET /guardrails/{id}', { path: { id } });
  const [action, setAction] = useState<'edit' | 'delete'>();
  const remove = useChange(
    () => api('DELETE /guardrails/{id}', { path: { id } }),
    ['GET /guardrails'],
    () => go(link('/guardrails')),
  );
  const guardrail = data?.data;
  return (
    <Page
      title={guardrail?.name ?? 'Guardrail'}
      about={guardrail?.description ?? undefined}
      actions={guardrail && <ItemActions onEdit={() => setAction('edit')} onDelete={() => setAction('delete')} />}
    >
      <Problem error={error} retry={() => void refetch()} />
      {guardrail === undefined ? (
        error === null && <Waiting />
      ) : (
        <>
          <Card title="Rules">
            <Facts
              rows={[
                ['Filters', <FilterBadges key="filters" item={guardrail} />],
                ['Models', guardrail.allowed_models?.join(', ') ?? 'all'],
                ['Providers', guardrail.allowed_providers?.join(', ') ?? 'all'],
                [
                  'Limit',
                  guardrail.limit_usd === null
                    ? 'none'
                    : `${usd(guardrail.limit_usd)} ${guardrail.reset_interval ?? ''}`,
                ],
                ['Not these models', guardrail.ignored_models?.join(', ') ?? 'none'],
                ['Not these providers', guardrail.ignored_providers?.join(', ') ?? 'none'],
                ['Zero data retention', namesOf(RETENTION, (member) => guardrail[member] === true) ?? 'not required'],
                ['Not allowed', namesOf(USES, (member) => guardrail[member] === false) ?? 'nothing'],
                ['Regions', guardrail.allowed_data_regions?.join(', ') ?? 'all'],
              ]}
            />
          </Card>
          <TestBox id={id} hasFilters={filtersOf(guardrail).length > 0} />
          <div class="columns">
            <KeyAssignments id={id} workspace={guardrail.workspace_id} />
            <MemberAssignments id={id} />
          </div>
          {action === 'edit' && <EditGuardrail guardrail={guardrail} onClose={() => setAction(undefined)} />}
          {action === 'delete' && (
            <Confirm
              title={`Delete ${guardrail.name}?`}
              action="Delete the guardrail"
              change={remove}
              onClose={() => setAction(undefined)}
            >
              <p>This cannot be undone.</p>
              <ul>
                <li>Keys and members that it is assigned to are no longer restricted by it.</li>
                <li>Its filters, allowed models and limits are lost.</li>
              </ul>
            </Confirm>
          )}
        </>
      )}
    </Page>
  );
}

/** Shows what a text would trigger; nothing is sent to a model. */
function TestBox({ id, hasFilters }: { id: string; hasFilters: boolean }) {
  const [text, setText] = useState('');
  const change = useChange(() => api('POST /guardrails/{id}/test', { path: { id }, body: { text } }));
  const result = change.data?.data;
  return (
    <Card title="Test a text">
      <Form submit="Test" change={change} disabled={text === ''}>
        <Area
          label="As a user would write it"
          rows={4}
          value={text}
          onInput={setText}
          hint={hasFilters ? 'Nothing is sent to a model.' : 'This guardrail has no filters yet.'}
        />
      </Form>
      {result !== undefined && (
        <div class="stack verdict" role="status">
          <p>
            {result.blocked ? (
              <Badge tone="bad">Blocked</Badge>
            ) : result.matches.length > 0 ? (
              <Badge tone="warn">Allowed, with matches</Badge>
            ) : (
              <Badge tone="good">Nothing found</Badge>
            )}
          </p>
          <ul class="badges">
            {result.matches.map((match) => (
              <li key={`${match.filter} ${match.start}`}>
                <Badge tone={ACTION_TONES[match.action] ?? 'plain'}>
                  {match.action} {match.filter} at {match.start}
                </Badge>
              </li>
            ))}
          </ul>
          {!result.blocked && result.matches.length > 0 && (
            <>
              <h3>What the model gets</h3>
              <p class="prose">{result.text}</p>
            </>
          )}
        </div>
      )}
    </Card>
  );
}
