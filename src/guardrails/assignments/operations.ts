/** Assigns guardrails to keys and members, in bulk, and unassigns them. */
import { type Caller, KEYS_TOPIC, MEMBERS_TOPIC } from '../../access/index.ts';
import { authorOf, changeAs } from '../../audit/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { uuidv7 } from '../../base/ids.ts';
import { MANAGEMENT } from '../../http/access-rule.ts';
import { idOf, listReply, ok, type Page, PageQuery, pageOf } from '../../http/contract.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import type { Queryable } from '../../storage/database.ts';
import { guardrailResource } from '../guardrail.ts';
import { existingGuardrail, type GuardrailParts } from '../operations.ts';
import * as schema from '../schema.ts';
import type { StoredGuardrail } from '../store.ts';
import * as store from './store.ts';

const TAG = 'Guardrails';

export function assignmentOperations(parts: GuardrailParts): Operation<Caller>[] {
  return [
    listing(parts, 'listKeyAssignments', '/guardrails/assignments/keys', keyPage),
    listing(parts, 'listMemberAssignments', '/guardrails/assignments/members', memberPage),
    listing(parts, 'listGuardrailKeyAssignments', '/guardrails/{id}/assignments/keys', keyPage),
    listing(parts, 'listGuardrailMemberAssignments', '/guardrails/{id}/assignments/members', memberPage),
    assignment(parts, KEYS, false),
    assignment(parts, KEYS, true),
    assignment(parts, MEMBERS, false),
    assignment(parts, MEMBERS, true),
  ];
}

interface Listed {
  summary: string;
  reply: typeof schema.KeyAssignmentsEnvelope | typeof schema.MemberAssignmentsEnvelope;
  read(
    db: Queryable,
    organizationId: string,
    guardrailId: string | null,
    page: Page,
  ): Promise<{ data: unknown[]; total_count: number }>;
}

const keyPage: Listed = {
  summary: 'List the assignments of guardrails to keys, newest first',
  reply: schema.KeyAssignmentsEnvelope,
  async read(db, organizationId, guardrailId, page) {
    const { assignments, total } = await store.listKeyAssignments(db, organizationId, guardrailId, page);
    const data = assignments.map((one) => ({
      ...shared(one),
      key_hash: one.keyHash,
      key_name: one.keyName,
      key_label: one.keyLabel,
    }));
    return listReply(data, total);
  },
};

const memberPage: Listed = {
  summary: 'List the assignments of guardrails to members, newest first',
  reply: schema.MemberAssignmentsEnvelope,
  async read(db, organizationId, guardrailId, page) {
    const { assignments, total } = await store.listMemberAssignments(db, organizationId, guardrailId, page);
    const data = assignments.map((one) => ({
      ...shared(one),
      user_id: one.userId,
      organization_id: one.organizationId,
    }));
    return listReply(data, total);
  },
};

function shared({ id, guardrailId, assignedBy, createdAt }: store.KeyAssignment | store.MemberAssignment) {
  return { id, guardrail_id: guardrailId, assigned_by: assignedBy, created_at: createdAt.toISOString() };
}

function listing(parts: GuardrailParts, id: string, path: string, { summary, reply, read }: Listed): Operation<Caller> {
  const ofOne = path.includes('{id}');
  return {
    id,
    method: 'GET',
    path,
    summary: ofOne ? `${summary}, for one guardrail` : summary,
    tag: TAG,
    access: MANAGEMENT,
    ...(ofOne && { params: schema.GuardrailParamsSchema }),
    query: PageQuery,
    replies: ok('One page', reply),
    async handle(exchange) {
      const { database } = parts;
      const { organizationId } = exchange.caller;
      const guardrail = ofOne ? await existingGuardrail(database, organizationId, idOf(exchange)) : null;
      exchange.reply(200, await read(database, organizationId, guardrail?.id ?? null, pageOf(exchange.query)));
    },
  };
}

/** Keys or members. */
interface Kind {
  noun: 'keys' | 'members';
  body: typeof schema.KeyHashesSchema | typeof schema.MemberIdsSchema;
  named(exchange: Exchange<Caller>): string[];
  /** Topic on which each changed key or member is announced. */
  topic: string;
  assign: typeof store.assignKeys;
  unassign: typeof store.unassignKeys;
}

const KEYS: Kind = {
  noun: 'keys',
  body: schema.KeyHashesSchema,
  named: (exchange) => (exchange.body as { key_hashes: string[] }).key_hashes.map((hash) => hash.toLowerCase()),
  topic: KEYS_TOPIC,
  assign: store.assignKeys,
  unassign: store.unassignKeys,
};

const MEMBERS: Kind = {
  noun: 'members',
  body: schema.MemberIdsSchema,
  named: (exchange) => (exchange.body as { member_user_ids: string[] }).member_user_ids,
  topic: MEMBERS_TOPIC,
  assign: store.assignMembers,
  unassign: store.unassignMembers,
};

function assignment(
  parts: GuardrailParts,
  { noun, body, named, topic, assign, unassign }: Kind,
  removes: boolean,
): Operation<Caller> {
  const Noun = noun === 'keys' ? 'Keys' : 'Members';
  const member = removes ? 'unassigned_count' : 'assigned_count';
  return {
    id: removes ? `unassign${Noun}` : `assign${Noun}`,
    method: 'POST',
    path: `/guardrails/{id}/assignments/${noun}${removes ? '/remove' : ''}`,
    summary: removes
      ? `Unassign the guardrail from ${noun}`
      : `Assign the guardrail to ${noun}, replacing their current one; unknown ${noun} are ignored`,
    tag: TAG,
    access: MANAGEMENT,
    params: schema.GuardrailParamsSchema,
    body: { schema: body },
    replies: ok(
      'The number changed. The change is in effect in every process',
      removes ? schema.UnassignedEnvelope : schema.AssignedEnvelope,
    ),
    async handle(exchange) {
      const { organizationId, userId } = exchange.caller;
      const names = [...new Set(named(exchange))];
      const { count, isNewLimit } = await changeAs(authorOf(exchange), parts, async (tx, changed, announce) => {
        const guardrail = await assignable(tx, organizationId, idOf(exchange));
        const createdAt = new Date(parts.clock.now());
        const ids = names.map(() => uuidv7(createdAt.getTime()));
        const by = { organizationId, guardrailId: guardrail.id, assignedBy: userId, createdAt };
        const touched = removes
          ? await unassign(tx, organizationId, guardrail.id, names)
          : await assign(tx, names, ids, by);
        if (touched.changed.length > 0) {
          await changed({
            action: `guardrail.${noun}_${removes ? 'unassigned' : 'assigned'}`,
            ...guardrailResource(guardrail),
            [removes ? 'before' : 'after']: { [noun === 'keys' ? 'key_hashes' : 'member_user_ids']: touched.changed },
          });
        }
        await announce(topic, ...touched.named);
        const isNewLimit = !removes && guardrail.limitNano !== null && touched.changed.length > 0;
        return { count: touched.named.length, isNewLimit };
      });
      // Leases do not cover spend from before the new limit.
      if (isNewLimit) await parts.spendEntered();
      exchange.reply(200, { [member]: count });
    },
  };
}

/** Locks the guardrail until the transaction ends. Throws 404, and 400 for the default guardrail of a workspace. */
async function assignable(tx: Queryable, organizationId: string, id: string): Promise<StoredGuardrail> {
  const guardrail = await existingGuardrail(tx, organizationId, id, true);
  if (!guardrail.isDefault) return guardrail;
  throw new GatewayError(
    'invalid_request',
    'The default guardrail of a workspace applies to the whole workspace and cannot be assigned.',
    { path: 'id' },
  );
}
