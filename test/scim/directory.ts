/** An identity provider in front of a whole gateway: its token, its requests, and what the control plane shows of it. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { createOperatorKey } from '../../src/access/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { openChanges } from '../../src/storage/changes.ts';
import type { Target } from '../../src/storage/connection.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { type Gateway, type GatewayOptions, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

export interface ScimAnswer {
  status: number;
  headers: Headers;
  /** undefined if there is none. */
  body: Json;
}

export const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group';
export const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
export const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
export const ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error';

export interface Directory {
  gateway: Gateway;
  token: string;
  control: ReturnType<typeof controlOf>;
  /** @param path below `/scim/v2` */
  scim(method: string, path: string, body?: Json, headers?: Record<string, string>): Promise<ScimAnswer>;
  patch(path: string, ...operations: Json[]): Promise<ScimAnswer>;
  /** Makes a user and yields it. */
  user(userName: string, more?: Json): Promise<Json>;
  group(displayName: string, memberIds?: readonly string[]): Promise<Json>;
  refused(pending: Promise<ScimAnswer>, status: number, scimType: string | undefined, detail: RegExp): Promise<void>;
  /** User ids to roles of a workspace. */
  rolesIn(workspace: string): Promise<Record<string, string>>;
}

export async function startDirectory(t: Pick<TestContext, 'after'>, options: GatewayOptions = {}): Promise<Directory> {
  const gateway = await startGateway(t, options);
  return directoryOf(gateway, await scimToken(gateway.target));
}

/** A token as `gatehouse scim token create` makes it. */
export async function scimToken(target: Target): Promise<string> {
  const parts = { target, clock: systemClock, log: silentLog };
  const database = await openDatabase(parts);
  const changes = await openChanges({ ...parts, database });
  try {
    return await createOperatorKey({ database, changes, clock: systemClock }, 'scim', { name: 'identity provider' });
  } finally {
    await changes.close();
    await database.close();
  }
}

export function directoryOf(gateway: Gateway, token: string): Directory {
  const control = controlOf(gateway);
  const scim: Directory['scim'] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${gateway.url}/scim/v2${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json', ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    if (text !== '') assert.equal(response.headers.get('content-type'), 'application/scim+json', path);
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
  };
  const made = async (path: string, body: Json): Promise<Json> => {
    const answer = await scim('POST', path, body);
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer.body;
  };
  return {
    gateway,
    token,
    control,
    scim,
    patch: (path, ...Operations) => scim('PATCH', path, { schemas: [PATCH], Operations }),
    user: (userName, more = {}) => made('/Users', { schemas: [USER], userName, active: true, ...more }),
    group: (displayName, memberIds = []) =>
      made('/Groups', { schemas: [GROUP], displayName, members: memberIds.map((value) => ({ value })) }),
    async refused(pending, status, scimType, detail) {
      const answer = await pending;
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      assert.deepEqual(answer.body.schemas, [ERROR]);
      assert.equal(answer.body.status, String(status));
      assert.equal(answer.body.scimType, scimType, answer.body.detail);
      assert.match(answer.body.detail, detail);
    },
    async rolesIn(workspace) {
      const roles: Record<string, string> = {};
      for (let offset = 0; ; offset += 100) {
        const { status, body } = await control.call(
          'GET',
          `/workspaces/${workspace}/members?limit=100&offset=${offset}`,
        );
        assert.equal(status, 200, JSON.stringify(body));
        for (const member of body.data) roles[member.user_id] = member.role;
        if (body.data.length < 100) return roles;
      }
    },
  };
}
