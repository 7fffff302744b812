/** `/scim/v2/Users`. */
import type { Caller } from '../../access/index.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import type { Queryable } from '../../storage/database.ts';
import { USER } from '../protocol/attributes.ts';
import { notFound, refusal } from '../protocol/fault.ts';
import * as protocol from '../protocol/operation.ts';
import { applyPatch } from '../protocol/patch.ts';
import { type Projection, project, tells } from '../protocol/projection.ts';
import { readResource } from '../protocol/resource.ts';
import { type Provisioning, type ProvisioningParts, provisionPushed } from '../provisioning.ts';
import { changeUser, createUser, removeUser } from './provision.ts';
import * as store from './store.ts';
import { type UserFacts, userFacts, userResource } from './user.ts';

const one = { 200: { description: 'The user', schema: protocol.AnyObject } };

export function userOperations(parts: ProvisioningParts): Operation<Caller>[] {
  return [
    ...listUsers(parts),
    createUserOperation(parts),
    getUser(parts),
    replaceUser(parts),
    patchUser(parts),
    deleteUser(parts),
  ];
}

function listUsers(parts: ProvisioningParts): Operation<Caller>[] {
  return protocol.listOperations({
    type: USER,
    plural: 'Users',
    ids: { list: 'listScimUsers', search: 'searchScimUsers' },
    async read(exchange, { condition, order, startIndex, count, projection }) {
      const { database } = parts;
      const { organizationId } = exchange.caller;
      const total = await store.countUsers(database, organizationId, condition);
      const question = { condition, order, offset: startIndex - 1, limit: count };
      const users = count === 0 ? [] : await store.listUsers(database, organizationId, question);
      return { total, resources: await shown(database, users, projection, protocol.rootUrl(exchange)) };
    },
  });
}

function createUserOperation(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'createScimUser',
    method: 'POST',
    path: '/Users',
    summary: 'Make a user, who is a member of the organization from now on',
    query: protocol.ShownQuery,
    body: { schema: protocol.AnyObject },
    replies: { 201: { description: 'The user', schema: protocol.AnyObject } },
    async handle(exchange) {
      const facts = userFacts(readResource(USER, exchange.body), true);
      const user = await written(parts, exchange, (provisioning) => createUser(provisioning, facts));
      await replyUser(parts, exchange, 201, user);
    },
  });
}

function getUser(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'getScimUser',
    method: 'GET',
    path: '/Users/{id}',
    summary: 'One user',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    replies: one,
    async handle(exchange) {
      await replyUser(parts, exchange, 200, await existing(parts.database, exchange));
    },
  });
}

function replaceUser(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'replaceScimUser',
    method: 'PUT',
    path: '/Users/{id}',
    summary: 'Replace all attributes of a user; without `active` that stays as it is',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: { schema: protocol.AnyObject },
    replies: one,
    async handle(exchange) {
      const attributes = readResource(USER, exchange.body);
      await change(parts, exchange, (before) => userFacts(attributes, before.active));
    },
  });
}

function patchUser(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'patchScimUser',
    method: 'PATCH',
    path: '/Users/{id}',
    summary: 'Change attributes of a user: all operations or none',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: { schema: protocol.AnyObject },
    replies: one,
    async handle(exchange) {
      await change(parts, exchange, (before) => {
        const { attributes } = applyPatch(USER, before.userId, before.attributes, exchange.body);
        // What cannot be told apart from an order to let the user in or out is none.
        if (attributes['active'] === undefined) throw refusal('invalidValue', 'active must be true or false');
        return userFacts(attributes, before.active);
      });
    },
  });
}

function deleteUser(parts: ProvisioningParts): Operation<Caller> {
  return protocol.scimOperation({
    id: 'deleteScimUser',
    method: 'DELETE',
    path: '/Users/{id}',
    summary: 'Delete a user, whose keys stop working at once',
    params: protocol.IdParams,
    replies: { 204: { description: 'The user is gone' } },
    async handle(exchange) {
      await provisionPushed(parts, exchange, async (provisioning) => {
        const user = await existing(provisioning.tx, exchange);
        protocol.checkVersion(exchange, user.version);
        await removeUser(provisioning, user);
      });
      exchange.reply(204, undefined);
    },
  });
}

async function change(
  parts: ProvisioningParts,
  exchange: Exchange<Caller>,
  factsOf: (before: store.StoredUser) => UserFacts,
): Promise<void> {
  const user = await written(parts, exchange, async (provisioning) => {
    const before = await existing(provisioning.tx, exchange);
    protocol.checkVersion(exchange, before.version);
    await changeUser(provisioning, before, factsOf(before));
    return before.userId;
  });
  await replyUser(parts, exchange, 200, user);
}

/** Yields the user as it is afterwards. */
function written(
  parts: ProvisioningParts,
  exchange: Exchange<Caller>,
  write: (provisioning: Provisioning) => Promise<string>,
): Promise<store.StoredUser> {
  return provisionPushed(parts, exchange, async (provisioning) => {
    const userId = await write(provisioning);
    return (await store.findUser(provisioning.tx, provisioning.organizationId, userId))!;
  });
}

async function replyUser(
  parts: ProvisioningParts,
  exchange: Exchange<Caller>,
  status: 200 | 201,
  user: store.StoredUser,
) {
  const root = protocol.rootUrl(exchange);
  const [resource] = await shown(parts.database, [user], protocol.projectionOf(USER, exchange.query), root);
  protocol.replyResource(exchange, status, resource!, protocol.metaOf(USER, user.userId, user, root));
}

async function shown(db: Queryable, users: readonly store.StoredUser[], projection: Projection, root: string) {
  const ids = users.map(({ userId }) => userId);
  const rows = ids.length > 0 && tells(projection, 'groups') ? await store.groupsOfUsers(db, ids) : [];
  const groups = Map.groupBy(rows, ({ userId }) => userId);
  return users.map((user) => project(userResource(user, groups.get(user.userId) ?? [], root), projection));
}

async function existing(db: Queryable, { caller, params }: Exchange<Caller>): Promise<store.StoredUser> {
  const id = params['id']!;
  const user = id.includes('\0') ? undefined : await store.findUser(db, caller.organizationId, id);
  if (!user) throw notFound('user', id);
  return user;
}
