/** Reads users and groups from an identity provider's SCIM endpoint, through the checked egress. */

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

/** The provider's response is unusable; the message may be shown to clients. */
export class SourceError extends Error {}

interface DirectorySource {
  egress: Egress;
  source: ScimSource;
  signal: AbortSignal;
  /** Called before each request; throws if another process has taken over the job. */
  proceed(): Promise<void>;
}

const PAGE = 200;
const MAX_PAGES = 2_000;
const MAX_RESOURCES = 100_000;
const MAX_BYTES = 32 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

/** Reads everything or throws: resources missing from a partial directory would be removed. */
export async function readDirectory(directory: DirectorySource): Promise<RemoteDirectory> {
  const users = await readAll(directory, 'Users');
  const listed = await readAll(directory, 'Groups');
  const groups: RemoteResource[] = [];
  for (const group of listed) {
    // Some providers omit members from lists, which looks the same as a group without members.
    const whole =
      memberOf(group.body, 'members') === undefined
        ? await read(directory, `Groups/${encodeURIComponent(group.id)}`)
        : group.body;
    groups.push({ id: group.id, body: whole });
  }
  return { users, groups };
}

async function readAll(directory: DirectorySource, type: 'Users' | 'Groups'): Promise<RemoteResource[]> {
  const found = new Map<string, RemoteResource>();
  let startIndex = 1;
  for (let page = 0; page < MAX_PAGES; page++) {
    const list = await read(directory, `${type}?startIndex=${startIndex}&count=${PAGE}`);
    const total = memberOf(list, 'totalresults');
    const resources = memberOf(list, 'resources') ?? [];
    if (typeof total !== 'number' || !Array.isArray(resources))
      throw new SourceError(`the response of /${type} is not a SCIM list`);
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

async function read(
  { egress, source, signal, proceed }: DirectorySource,
  path: string,
): Promise<Record<string, unknown>> {
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
    if (status !== 200) throw new SourceError(`the identity provider returned status ${status} for ${shown}`);
    const value: unknown = JSON.parse(body.toString('utf8'));
    if (isObject(value)) return value;
    throw new SourceError(`the identity provider did not return a JSON object for ${shown}`);
  } catch (error) {
    if (error instanceof EgressError)
      throw new SourceError(`the identity provider ${error.message} (${shown})`, { cause: error });
    if (error instanceof SyntaxError) throw new SourceError(`the identity provider did not return JSON for ${shown}`);
    throw error;
  }
}

/** Looks up a member; SCIM names are case-insensitive. */
export function memberOf(value: Record<string, unknown>, lowerName: string): unknown {
  return Object.entries(value).find(([key]) => key.toLowerCase() === lowerName)?.[1];
}
