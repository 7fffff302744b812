/**
 * The law of memberships: after any sequence of pushes, patches, changes of mappings and changes by hand, who is in which
 * workspace with which role is what a small model computes from scratch.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { inDatabase, type Json } from '../workspaces/control.ts';
import { startDirectory } from './directory.ts';

const directory = await startDirectory({ after: (close) => after(close as () => Promise<void>) });
const { scim, patch, control, gateway } = directory;

type Role = 'admin' | 'member';
const [USERS, GROUPS, WORKSPACES] = [4, 3, 2];

/** What is known without asking the gateway. */
class Model {
  /** Of each user: whether there is one, and whether they are active. */
  readonly users = new Map<number, { id: string; active: boolean }>();
  readonly groups = new Map<number, { id: string; members: Set<number> }>();
  readonly mappings = new Map<string, { id: string; role: Role }>();
  /** Memberships by hand with their roles. */
  readonly byHand = new Map<string, Role>();

  leaves(user: number): void {
    for (const key of [...this.byHand.keys()]) if (key.endsWith(`/${user}`)) this.byHand.delete(key);
  }

  granted(workspace: number, user: number): Role | undefined {
    const roles = [...this.mappings].flatMap(([key, { role }]) => {
      const [group, place] = key.split('/').map(Number);
      return place === workspace && this.groups.get(group!)?.members.has(user) ? [role] : [];
    });
    return roles.includes('admin') ? 'admin' : roles[0];
  }

  rolesIn(workspace: number): Record<string, Role> {
    const roles: Record<string, Role> = {};
    for (const [user, { id, active }] of this.users) {
      const all = [this.byHand.get(`${workspace}/${user}`), this.granted(workspace, user)];
      if (!active) continue;
      if (all.includes('admin')) roles[id] = 'admin';
      else if (all.includes('member')) roles[id] = 'member';
    }
    return roles;
  }
}

type Step = (model: Model, run: Run) => Promise<void>;
interface Run {
  name(kind: string, number: number): string;
  workspaces: readonly string[];
}

const user = fc.nat(USERS - 1);
const group = fc.nat(GROUPS - 1);
const workspace = fc.nat(WORKSPACES - 1);
const role = fc.constantFrom<Role>('admin', 'member');
const ok = (answer: { status: number; body: Json }): Json => {
  assert.ok(answer.status < 300, JSON.stringify(answer.body));
  return answer.body;
};

const addUser = fc.tuple(user, fc.boolean()).map(
  ([number, active]): Step =>
    async (model, { name }) => {
      if (model.users.has(number)) return;
      const body = ok(await scim('POST', '/Users', { userName: name('u', number), active }));
      model.users.set(number, { id: body.id, active });
    },
);

const setActive = fc.tuple(user, fc.boolean(), fc.boolean()).map(
  ([number, active, whole]): Step =>
    async (model, { name }) => {
      const known = model.users.get(number);
      if (!known) return;
      if (whole) ok(await scim('PUT', `/Users/${known.id}`, { userName: name('u', number), active }));
      else ok(await patch(`/Users/${known.id}`, { op: 'Replace', path: 'active', value: active ? 'True' : 'False' }));
      if (!active) model.leaves(number);
      known.active = active;
    },
);

const deleteUser = user.map(
  (number): Step =>
    async (model) => {
      const known = model.users.get(number);
      if (!known) return;
      ok(await scim('DELETE', `/Users/${known.id}`));
      model.leaves(number);
      model.users.delete(number);
      for (const { members } of model.groups.values()) members.delete(number);
    },
);

const addGroup = fc.tuple(group, fc.uniqueArray(user)).map(
  ([number, listed]): Step =>
    async (model, { name }) => {
      if (model.groups.has(number)) return;
      const members = listed.filter((each) => model.users.has(each));
      const body = ok(
        await scim('POST', '/Groups', {
          displayName: name('g', number),
          members: members.map((each) => ({ value: model.users.get(each)!.id })),
        }),
      );
      model.groups.set(number, { id: body.id, members: new Set(members) });
    },
);

const deleteGroup = group.map(
  (number): Step =>
    async (model) => {
      const known = model.groups.get(number);
      if (!known) return;
      ok(await scim('DELETE', `/Groups/${known.id}`));
      model.groups.delete(number);
      for (const key of [...model.mappings.keys()]) if (key.startsWith(`${number}/`)) model.mappings.delete(key);
    },
);

const verbs = fc.constantFrom('add', 'remove', 'remove by path', 'replace', 'put');
const changeMembers = fc.tuple(group, verbs, fc.uniqueArray(user)).map(
  ([number, verb, listed]): Step =>
    async (model, { name }) => {
      const known = model.groups.get(number);
      const some = listed.filter((each) => model.users.has(each));
      if (!known) return;
      const value = some.map((each) => ({ value: model.users.get(each)!.id }));
      const path = `/Groups/${known.id}`;
      if (verb === 'put') ok(await scim('PUT', path, { displayName: name('g', number), members: value }));
      else if (verb !== 'remove by path') ok(await patch(path, { op: verb, path: 'members', value }));
      else for (const each of value) ok(await patch(path, { op: 'remove', path: `members[value eq "${each.value}"]` }));
      if (verb === 'add') for (const each of some) known.members.add(each);
      else if (verb.startsWith('remove')) for (const each of some) known.members.delete(each);
      else known.members = new Set(some);
    },
);

const map = fc.tuple(group, workspace, role).map(
  ([number, place, wanted]): Step =>
    async (model, { workspaces }) => {
      const known = model.groups.get(number);
      const key = `${number}/${place}`;
      const before = model.mappings.get(key);
      if (!known) return;
      if (before) {
        ok(await control.call('PATCH', `/scim/group-mappings/${before.id}`, { role: wanted }));
        before.role = wanted;
        return;
      }
      const body = { scim_group_id: known.id, workspace_id: workspaces[place], role: wanted };
      model.mappings.set(key, {
        id: ok(await control.call('POST', '/scim/group-mappings', body)).data.id,
        role: wanted,
      });
    },
);

const unmap = fc.tuple(group, workspace, fc.boolean()).map(
  ([number, place, keep]): Step =>
    async (model) => {
      const key = `${number}/${place}`;
      const mapping = model.mappings.get(key);
      if (!mapping) return;
      ok(await control.call('DELETE', `/scim/group-mappings/${mapping.id}?keep_members=${keep}`));
      model.mappings.delete(key);
      if (!keep) return;
      for (const member of model.groups.get(number)!.members) {
        if (!model.users.get(member)!.active) continue;
        const hand = model.byHand.get(`${place}/${member}`);
        model.byHand.set(`${place}/${member}`, hand === 'admin' ? 'admin' : mapping.role);
      }
    },
);

const byHand = fc.tuple(workspace, user).map(
  ([place, number]): Step =>
    async (model, { workspaces }) => {
      const known = model.users.get(number);
      const answer =
        known && (await control.call('POST', `/workspaces/${workspaces[place]}/members/add`, { user_ids: [known.id] }));
      if (!answer) return;
      assert.equal(answer.status, known.active ? 200 : 400, JSON.stringify(answer.body));
      // Whoever has one already keeps it as it is.
      const key = `${place}/${number}`;
      if (known.active && !model.byHand.has(key)) model.byHand.set(key, 'member');
    },
);

const removed = fc.tuple(workspace, user).map(
  ([place, number]): Step =>
    async (model, { workspaces }) => {
      const known = model.users.get(number);
      if (!known) return;
      const path = `/workspaces/${workspaces[place]}/members/remove`;
      const { status } = await control.call('POST', path, { user_ids: [known.id] });
      const held = known.active && model.granted(place, number) !== undefined;
      assert.equal(status, held ? 403 : 200);
      if (!held) model.byHand.delete(`${place}/${number}`);
    },
);

const change = fc.oneof(
  { weight: 3, arbitrary: addUser },
  { weight: 3, arbitrary: addGroup },
  { weight: 4, arbitrary: changeMembers },
  { weight: 4, arbitrary: map },
  { weight: 2, arbitrary: unmap },
  { weight: 2, arbitrary: setActive },
  { weight: 2, arbitrary: byHand },
  removed,
  deleteUser,
  deleteGroup,
);

/** Most of what there can be is there from the beginning, so that every change has something to change. */
const steps = fc
  .tuple(
    fc.array(addUser, { minLength: 8, maxLength: 8 }),
    fc.array(addGroup, { minLength: 6, maxLength: 6 }),
    fc.array(map, { minLength: 4, maxLength: 4 }),
    fc.array(change, { minLength: 30, maxLength: 30 }),
  )
  .map(([users, groups, maps, changes]) => ({ before: [...users, ...groups, ...maps], changes }));

test('memberships are what the groups, the mappings and the hands say, after any sequence of changes', async () => {
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(steps, async ({ before, changes }) => {
      runs += 1;
      const prefix = `run${runs}`;
      const workspaces: string[] = [];
      for (let place = 0; place < WORKSPACES; place++) {
        workspaces.push((await control.made({ name: 'W', slug: `${prefix}-${place}` })).id);
      }
      await inDatabase(gateway, [
        `delete from workspace_members where user_id not in (select user_id from scim_users)`,
      ]);
      const model = new Model();
      const run: Run = { name: (kind, number) => `${prefix}-${kind}${number}`, workspaces };
      for (const step of before) await step(model, run);
      for (const step of changes) {
        await step(model, run);
        for (const [place, id] of workspaces.entries()) {
          assert.deepEqual(await directory.rolesIn(id), model.rolesIn(place));
        }
      }
    }),
    { seed: 20_260_727, numRuns: Number(process.env['GATEHOUSE_TEST_EXHAUSTIVE'] ? 200 : 5) },
  );
});
