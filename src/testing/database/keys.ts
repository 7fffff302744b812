/**
 * Keys over HTTP for the tests of `access/`: processes with connections, caches and a server of their own on one database.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import {
  type Access,
  accessMigrations,
  type Caller,
  createAccess,
  type KeyUsage,
  keyOperations,
} from '../../access/index.ts';
import { auditMigrations } from '../../audit/index.ts';
import { createLog } from '../../base/log.ts';
import { createHttpServer } from '../../http/server.ts';
import { openChanges } from '../../storage/changes.ts';
import type { Target } from '../../storage/connection.ts';
import { type Database, openDatabase } from '../../storage/database.ts';
import { TestClock } from '../clock/clock.ts';
import { freshDatabase } from './database.ts';

/** One process. Its clock moves connections, caches and server alike. */
export class KeyProcess {
  readonly clock: TestClock;
  readonly database: Database;
  readonly access: Access;
  readonly lines: string[];
  readonly usage = new Map<string, KeyUsage>();
  readonly #url: string;

  private constructor(clock: TestClock, database: Database, access: Access, lines: string[], url: string) {
    this.clock = clock;
    this.database = database;
    this.access = access;
    this.lines = lines;
    this.#url = url;
  }

  static async start(t: TestContext, target: Target, clock: TestClock): Promise<KeyProcess> {
    const lines: string[] = [];
    const log = createLog({ stream: { write: (line: string) => lines.push(line) }, level: 'debug' });
    const database = await openDatabase({ target, clock, log });
    t.after(() => database.close());
    const changes = await openChanges({ target, database, clock, log });
    t.after(() => changes.close());
    const access = createAccess({ database, changes, clock });
    let started: KeyProcess | undefined;
    const usageOf = async () => started?.usage ?? new Map();
    const server = createHttpServer<Caller>({
      operations: keyOperations({ database, changes, clock, usageOf, spendEntered: async () => {} }),
      authenticate: (headers) => access.authenticate(headers),
      permit: access.permit,
      userId: (caller) => caller.organizationId,
      clock,
      log,
    });
    const { port } = await server.listen(0, '127.0.0.1');
    t.after(() => server.drain(0));
    started = new KeyProcess(clock, database, access, lines, `http://127.0.0.1:${port}/api/v1`);
    return started;
  }

  async call(method: string, path: string, token: string | undefined, body?: unknown): Promise<Answer> {
    const headers = {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
    };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await fetch(this.#url + path, init);
    return { status: response.status, headers: response.headers, body: (await response.json()) as Answer['body'] };
  }
}

export interface Answer {
  status: number;
  headers: Headers;
  // What comes back is what is tested, so its shape is not taken for granted by more than this.
  body: { data?: unknown; key?: unknown; deleted?: unknown; error?: { code: number; message: string } };
}

export interface Keys {
  management: string;
  inference: string;
}

/** A process on a fresh database, after its first start. */
export async function installation(t: TestContext): Promise<{ gate: KeyProcess; keys: Keys; target: Target }> {
  const clock = new TestClock();
  const { target } = await freshDatabase(t, { migrations: [...accessMigrations, ...auditMigrations] });
  const gate = await KeyProcess.start(t, target, clock);
  const made = await gate.access.bootstrap();
  const token = (kind: string) => made?.find((key) => key.kind === kind)?.token ?? assert.fail(`no ${kind} key`);
  return { gate, keys: { management: token('management'), inference: token('inference') }, target };
}

export interface ShownKey extends Record<string, unknown> {
  hash: string;
  name: string;
}

/** Makes an inference key. */
export async function create(
  gate: KeyProcess,
  keys: Keys,
  body: Record<string, unknown>,
): Promise<ShownKey & { token: string }> {
  const answer = await gate.call('POST', '/keys', keys.management, body);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return { ...(answer.body.data as ShownKey), token: answer.body.key as string };
}

/** Expects a refusal of the status whose message matches. */
export function refused(answer: Answer, status: number, message: RegExp): void {
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.equal(answer.body.error?.code, status);
  assert.match(answer.body.error?.message ?? '', message);
}
