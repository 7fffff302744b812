/** `/scim/v2/Users`. */
import type { Caller } from '../../access/index.ts';
import { ok } from '../../http/contract.ts';
import type { Operation } from '../../http/operation.ts';
import type { Queryable } from '../../storage/database.ts';
import { Endpoint } from '../endpoint.ts';
import { USER } from '../protocol/attributes.ts';
import { refusal } from '../protocol/fault.ts';
import * as protocol from '../protocol/operation.ts';
import { applyPatch } from '../protocol/patch.ts';
import { includes, type Projection, project } from '../protocol/projection.ts';
import { readResource } from '../protocol/resource.ts';
import type { ProvisioningParts } from '../provisioning.ts';
import { changeUser, createUser, removeUser } from './provision.ts';
import * as store from './store.ts';
import { userFacts, userResource } from './user.ts';

type Users = Endpoint<store.StoredUser>;

const one = ok('The user', protocol.AnyObject);

export function userOperations(parts: ProvisioningParts): Operation<Caller>[] {
  const users = new Endpoint(parts, {
    type: USER,
    idOf: ({ userId }) => userId,
    find: findUser,
    count: store.countUsers,
    list: store.listUsers,
    announce: announceUsers,
  });
  return [
    ...users.listOperations({ plural: 'Users', ids: { list: 'listScimUsers', search: 'searchScimUsers' } }),
    createUserOperation(users),
    getUser(users),
    replaceUser(users),
    patchUser(users),
    deleteUser(users),
  ];
}

function createUserOperation(users: Users): Operation<Caller> {
  return protocol.scimOperation({
    id: 'createScimUser',
    method: 'POST',
    path: '/Users',
    summary: 'Create a user, who becomes a member of the organization',
    query: protocol.ShownQuery,
    body: { schema: protocol.AnyObject },
    errors: protocol.WRITE_ERRORS,
    replies: { 201: { description: 'The user', schema: protocol.AnyObject } },
    async handle(exchange) {
      const facts = userFacts(readResource(USER, exchange.body), true);
      const user = await users.create(exchange, (provisioning) => createUser(provisioning, facts));
      await users.reply(exchange, 201, user);
    },
  });
}

function getUser(users: Users): Operation<Caller> {
  return protocol.scimOperation({
    id: 'getScimUser',
    method: 'GET',
    path: '/Users/{id}',
    summary: 'One user',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    replies: one,
    async handle(exchange) {
      await users.reply(exchange, 200, await users.existing(exchange));
    },
  });
}

function replaceUser(users: Users): Operation<Caller> {
  return protocol.scimOperation({
    id: 'replaceScimUser',
    method: 'PUT',
    path: '/Users/{id}',
    summary: 'Replace all attributes of a user; an absent `active` stays unchanged',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: { schema: protocol.AnyObject },
    errors: protocol.WRITE_ERRORS,
    replies: one,
    async handle(exchange) {
      const attributes = readResource(USER, exchange.body);
      const user = await users.change(exchange, (provisioning, before) =>
        changeUser(provisioning, before, userFacts(attributes, before.active)),
      );
      await users.reply(exchange, 200, user);
    },
  });
}

function patchUser(users: Users): Operation<Caller> {
  return protocol.scimOperation({
    id: 'patchScimUser',
    method: 'PATCH',
    path: '/Users/{id}',
    summary: 'Update attributes of a user, all operations or none',
    params: protocol.IdParams,
    query: protocol.ShownQuery,
    body: { schema: protocol.AnyObject },
    errors: protocol.WRITE_ERRORS,
    replies: one,
    async handle(exchange) {
      const user = await users.change(exchange, async (provisioning, before) => {
        const { attributes } = applyPatch(USER, before.userId, before.attributes, exchange.body);
        // Removing `active` is ambiguous: it could mean to admit or to remove the user.
        if (attributes['active'] === undefined) throw refusal('invalidValue', 'active must be true or false');
        await changeUser(provisioning, before, userFacts(attributes, before.active));
      });
      await users.reply(exchange, 200, user);
    },
  });
}

function deleteUser(users: Users): Operation<Caller> {
  return protocol.scimOperation({
    id: 'deleteScimUser',
    method: 'DELETE',
    path: '/Users/{id}',
    summary: 'Delete a user; the keys of the user stop working at once',
    params: protocol.IdParams,
    errors: protocol.WRITE_ERRORS,
    replies: { 204: { description: 'The user is deleted' } },
    handle: (exchange) => users.remove(exchange, removeUser),
  });
}

async function findUser(db: Queryable, organizationId: string, id: string): Promise<store.StoredUser | undefined> {
  // PostgreSQL does not accept this character in text.
  return id.includes('\0') ? undefined : store.findUser(db, organizationId, id);
}

async function announceUsers(db: Queryable, users: readonly store.StoredUser[], projection: Projection, root: string) {
  const ids = users.map(({ userId }) => userId);
  const rows = ids.length > 0 && includes(projection, 'groups') ? await store.groupsOfUsers(db, ids) : [];
  const groups = Map.groupBy(rows, ({ userId }) => userId);
  return users.map((user) => project(userResource(user, groups.get(user.userId) ?? [], root), projection));
}
