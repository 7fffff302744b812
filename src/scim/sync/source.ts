/** Asks an identity provider for its users and groups, over its own SCIM endpoint and the checked egress. */

import type { ScimSource } from '../../base/config.ts';
import { type Egress, EgressError } from '../../egress/index.ts';
import { isObject } from '../protocol/resource.ts';

export interface RemoteResource {
  id: string;
  body: Record<string, unknown>;
}

export interface RemoteDirectory {
  users: readonly RemoteResource[];
  groups: readonly RemoteResource[];
}

/** Why the provider's answer is of no use; the message may be shown. */
export class SourceError extends Error {}

export interface Asking {
  egress: Egress;
  source: ScimSource;
  signal: AbortSignal;
  /** Called before each request; throws when the job is not ours any more. */
  proceed(): Promise<void>;
}

const PAGE = 200;
const MAX_PAGES = 2_000;
const MAX_RESOURCES = 100_000;
const MAX_BYTES = 32 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

/** All of it or an error: what is missing from half a directory would look as if it were gone. */
export async function readDirectory(asking: Asking): Promise<RemoteDirectory> {
  const users = await readAll(asking, 'Users');
  const listed = await readAll(asking, 'Groups');
  const groups: RemoteResource[] = [];
  for (const group of listed) {
    // Some leave the members out of lists, and of a group without any it cannot be told which it is.
    const whole =
      memberOf(group.body, 'members') === undefined
        ? await read(asking, `Groups/${encodeURIComponent(group.id)}`)
        : group.body;
    groups.push({ id: group.id, body: whole });
  }
  return { users, groups };
}

async function readAll(asking: Asking, type: 'Users' | 'Groups'): Promise<RemoteResource[]> {
  const found = new Map<string, RemoteResource>();
  let startIndex = 1;
  for (let page = 0; page < MAX_PAGES; page++) {
    const list = await read(asking, `${type}?startIndex=${startIndex}&count=${PAGE}`);
    const total = memberOf(list, 'totalresults');
    const resources = memberOf(list, 'resources') ?? [];
    if (typeof total !== 'number' || !Array.isArray(resources))
      throw new SourceError(`what /${type} answers is no list of SCIM`);
    for (const body of resources) {
      const id = isObject(body) ? memberOf(body, 'id') : undefined;
      if (typeof id !== 'string' || id === '') throw new SourceError(`/${type} lists a resource without an id`);
      found.set(id, { id, body: body as Record<string, unknown> });
    }
    if (found.size > MAX_RESOURCES) throw new SourceError(`/${type} has more than ${MAX_RESOURCES} resources`);
    startIndex += resources.length;
    if (startIndex > total) return [...found.values()];
    if (resources.length === 0) throw new SourceError(`/${type} ends after ${startIndex - 1} of ${total} resources`);
  }
  throw new SourceError(`/${type} has more than ${MAX_PAGES} pages`);
}

async function read({ egress, source, signal, proceed }: Asking, path: string): Promise<Record<string, unknown>> {
  await proceed();
  const shown = `GET /${path.split('?')[0]}`;
  try {
    const { status, body } = await egress.request({
      url: `${source.baseUrl}/${path}`,
      headers: { authorization: `Bearer ${source.token.reveal()}`, accept: 'application/scim+json, application/json' },
      maxBytes: MAX_BYTES,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    if (status !== 200) throw new SourceError(`the identity provider answered ${shown} with ${status}`);
    const value: unknown = JSON.parse(body.toString('utf8'));
    if (isObject(value)) return value;
    throw new SourceError(`the identity provider answered ${shown} with no object`);
  } catch (error) {
    if (error instanceof EgressError)
      throw new SourceError(`the identity provider ${error.message} (${shown})`, { cause: error });
    if (error instanceof SyntaxError) throw new SourceError(`the identity provider answered ${shown} with no JSON`);
    throw error;
  }
}

/** Names in SCIM mean the same in any case. */
export function memberOf(value: Record<string, unknown>, lowerName: string): unknown {
  return Object.entries(value).find(([key]) => key.toLowerCase() === lowerName)?.[1];
}
