/** Authorization codes: created when a person authorizes an application, exchanged once for a key. */
import { randomBytes } from 'node:crypto';
import { type Caller, hashToken, hasMember, issueKey, keyNumber } from '../access/index.ts';
import { type Author, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { changeEverywhere } from '../storage/change-everywhere.ts';
import type { Changes, Database } from '../storage/database.ts';
import { type AuthRequest, verifies } from './request.ts';
import type { ExchangeBody } from './schema.ts';
import * as store from './store.ts';

export interface CodeParts {
  database: Database;
  changes: Changes;
  clock: Clock;
}

/** Long enough for an application to fetch its key, too short for a leaked log to be useful. */
const LIFE_MS = 600_000;
const MOST_WRONG_VERIFIERS = 5;

interface NewCode {
  code: string;
  appId: number;
  createdAt: Date;
}

export async function createCode(
  parts: CodeParts,
  { organizationId, userId, keyHash }: Pick<Caller, 'organizationId' | 'userId' | 'keyHash'>,
  { callback, challenge, method, key }: AuthRequest,
  author: Author,
): Promise<NewCode> {
  const code = randomBytes(32).toString('base64url');
  const createdAt = new Date(parts.clock.now());
  const expiresAt = new Date(createdAt.getTime() + LIFE_MS);
  const appId = keyNumber(hashToken(callback.host));
  const place = { organizationId, userId, keyHash, callbackUrl: callback.href };
  await changeAs(author, parts, async (tx, changed) => {
    await store.insertCode(tx, { hash: hashToken(code), ...place, challenge, method, body: key, createdAt, expiresAt });
    const after = { callback_host: callback.host, code_challenge_method: method, ...key };
    const workspaceId = key.workspace_id ?? null;
    await changed({
      action: 'auth_code.created',
      resourceType: 'auth_code',
      resourceId: String(appId),
      workspaceId,
      after,
    });
  });
  return { code, appId, createdAt };
}

interface Exchanged {
  token: string;
  userId: string | null;
}

/**
 * Exchanges a code for a key. Throws GatewayError 403 for an unknown or expired code or a wrong verifier, 400 for a
 * method that differs from the code's, and 403 if the member who authorized the application has left.
 */
export async function exchangeCode(
  parts: CodeParts,
  { code, code_verifier: verifier, code_challenge_method: method }: ExchangeBody,
  sign: (organizationId: string, userId: string | null) => Author,
): Promise<Exchanged> {
  const now = parts.clock.now();
  const codeHash = hashToken(code);
  const exchanged = await changeEverywhere(parts, async (tx, announce) => {
    const stored = await store.lockCode(tx, codeHash, new Date(now));
    if (stored === undefined)
      throw forbidden('The code is not known: it was already exchanged, has expired, or never existed.');
    if (method != null && method !== stored.method) throw mismatch('code_challenge_method', stored.method);
    // An attacker who removed the challenge from the page's URL must not bypass it.
    if (stored.challenge === null && verifier !== undefined) throw mismatch('code_verifier', null);
    if (!verifies(stored, verifier)) {
      await store.countWrongVerifier(tx, codeHash, MOST_WRONG_VERIFIERS);
      // Throwing here would roll back the count.
      return undefined;
    }
    const { organizationId, userId } = stored;
    if (userId !== null && !(await hasMember(tx, organizationId, userId))) {
      throw forbidden('The member who authorized the application is no longer a member of the organization.');
    }
    await store.deleteCode(tx, codeHash);
    const request = { body: stored.body, creatorUserId: userId };
    const { token } = await issueKey(tx, announce, request, now, sign(organizationId, userId));
    return { token, userId };
  });
  if (exchanged === undefined)
    throw forbidden(
      'code_verifier does not match the challenge of the code, or does not have 43 to 128 characters (RFC 7636).',
    );
  return exchanged;
}

function forbidden(message: string): GatewayError {
  return new GatewayError('permission_denied', message);
}

function mismatch(path: string, method: string | null): GatewayError {
  return invalidField(
    path,
    `does not match: the code was created ${method === null ? 'without a challenge' : `with the method ${method}`}`,
  );
}
