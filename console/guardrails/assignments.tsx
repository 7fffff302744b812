/** The keys and members that a guardrail applies to. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { type ApiError, api } from '../api.ts';
import { useAll, useChange } from '../query.ts';
import { link } from '../route.ts';
import { Button, Card, Problem } from '../ui/basics.tsx';
import { Choice, type Option } from '../ui/forms.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { inWorkspace } from '../ui/workspace-choice.tsx';

export function KeyAssignments({ id, workspace }: { id: string; workspace: string | null }) {
  const assigned = useAll('GET /guardrails/{id}/assignments/keys', { path: { id } });
  const keys = useAll('GET /keys', { query: inWorkspace(workspace ?? '') });
  const stale = ['GET /guardrails/{id}/assignments/keys'] as const;
  const add = useChange(
    (hash: string) => api('POST /guardrails/{id}/assignments/keys', { path: { id }, body: { key_hashes: [hash] } }),
    stale,
  );
  const remove = useChange(
    (hash: string) =>
      api('POST /guardrails/{id}/assignments/keys/remove', { path: { id }, body: { key_hashes: [hash] } }),
    stale,
  );
  return (
    <Assignments
      title="Keys that it applies to"
      what="key"
      none="No keys. Without an assignment a guardrail does nothing, unless it is that of the whole workspace."
      rows={assigned.data?.rows ?? []}
      keyOf={({ key_hash }) => key_hash}
      nameOf={({ key_name }) => key_name}
      columns={[
        { head: 'Key', cell: (row) => <a href={link(`/keys/${row.key_hash}`)}>{row.key_name}</a> },
        { head: 'Secret', minor: true, cell: (row) => <span class="mono small soft">{row.key_label}</span> },
      ]}
      all={(keys.data?.rows ?? []).map(({ hash, name }) => [hash, name] as const)}
      error={assigned.error ?? add.error ?? remove.error}
      isBusy={add.isPending || remove.isPending}
      onAdd={add.mutate}
      onRemove={remove.mutate}
    />
  );
}

export function MemberAssignments({ id }: { id: string }) {
  const assigned = useAll('GET /guardrails/{id}/assignments/members', { path: { id } });
  const members = useAll('GET /organization/members');
  const stale = ['GET /guardrails/{id}/assignments/members'] as const;
  const change = { path: { id } };
  const add = useChange(
    (user: string) =>
      api('POST /guardrails/{id}/assignments/members', { ...change, body: { member_user_ids: [user] } }),
    stale,
  );
  const remove = useChange(
    (user: string) =>
      api('POST /guardrails/{id}/assignments/members/remove', { ...change, body: { member_user_ids: [user] } }),
    stale,
  );
  const all = (members.data?.rows ?? []).map(
    (each) => [each.id, [each.first_name, each.last_name].filter(Boolean).join(' ') || each.email || each.id] as const,
  );
  const nameOf = (user: string) => all.find(([member]) => member === user)?.[1] ?? user;
  return (
    <Assignments
      title="Members that it applies to"
      what="member"
      none="No members. One that is assigned is restricted with every key that the member created."
      rows={assigned.data?.rows ?? []}
      keyOf={({ user_id }) => user_id}
      nameOf={({ user_id }) => nameOf(user_id)}
      columns={[
        { head: 'Member', cell: (row) => nameOf(row.user_id) },
        { head: 'Id', minor: true, cell: (row) => <span class="mono small soft">{row.user_id}</span> },
      ]}
      all={all}
      error={assigned.error ?? add.error ?? remove.error}
      isBusy={add.isPending || remove.isPending}
      onAdd={add.mutate}
      onRemove={remove.mutate}
    />
  );
}

interface AssignmentsProps<R> {
  title: string;
  /** The noun for one. */
  what: string;
  none: ComponentChildren;
  rows: readonly R[];
  keyOf(row: R): string;
  nameOf(row: R): string;
  columns: readonly Column<R>[];
  /** Those that can be assigned, and those that are. */
  all: readonly Option[];
  error: ApiError | null;
  isBusy: boolean;
  onAdd(key: string): void;
  onRemove(key: string): void;
}

function Assignments<R>(props: AssignmentsProps<R>) {
  const { title, what, none, rows, keyOf, nameOf, columns, all, error, isBusy, onAdd, onRemove } = props;
  const [adding, setAdding] = useState('');
  const others = all.filter(([key]) => !rows.some((row) => keyOf(row) === key));
  return (
    <Card title={title} flush>
      <Problem error={error} />
      {rows.length === 0 ? (
        <p class="soft pad">{none}</p>
      ) : (
        <Table
          label={title}
          rows={rows}
          keyOf={keyOf}
          columns={[
            ...columns,
            {
              head: 'Change',
              end: true,
              cell: (row) => (
                <Button kind="quiet" busy={isBusy} onClick={() => onRemove(keyOf(row))}>
                  Remove<span class="unseen"> {nameOf(row)}</span>
                </Button>
              ),
            },
          ]}
        />
      )}
      <form
        class="inline pad"
        onSubmit={(event) => {
          event.preventDefault();
          if (adding !== '') onAdd(adding);
          setAdding('');
        }}
      >
        <Choice
          label={`Add a ${what}`}
          value={adding}
          options={[['', `Choose a ${what}`], ...others]}
          onChange={setAdding}
        />
        <Button type="submit" disabled={adding === ''} busy={isBusy}>
          Assign<span class="unseen"> the {what}</span>
        </Button>
      </form>
    </Card>
  );
}
