import type { Migration } from '../../storage/migrate.ts';

/**
 * Changes of the control plane. Rows are only ever inserted: triggers refuse updates and deletes for everyone,
 * including the owner of the table and replication.
 */
export const auditLog: Migration = {
  name: '0120-audit-log',
  sql: `
    create table audit_entries (
      place bigint generated always as identity primary key,
      id uuid not null,
      organization_id text not null,
      created_at timestamptz not null,
      action text not null,
      resource_type text not null,
      resource_id text not null,
      workspace_id text,
      actor_type text not null,
      actor_key_hash text,
      actor_key_label text,
      actor_user_id text,
      request_id text,
      source_address text,
      before jsonb,
      after jsonb
    );
    create index audit_entries_newest on audit_entries (organization_id, place);
    create index audit_entries_resource on audit_entries (organization_id, resource_type, resource_id, place);
    create index audit_entries_workspace on audit_entries (organization_id, workspace_id, place)
      where workspace_id is not null;

    create function refuse_audit_change() returns trigger language plpgsql as $$
    begin
      raise exception 'the audit log is append-only' using errcode = 'insufficient_privilege';
    end $$;
    create trigger audit_entries_stay before update or delete or truncate on audit_entries
      for each statement execute function refuse_audit_change();
    alter table audit_entries enable always trigger audit_entries_stay;
  `,
};
