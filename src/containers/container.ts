/** Containers: their state, files and names. No I/O. */
import { createHash, randomInt } from 'node:crypto';
import type { Caller } from '../access/index.ts';
import { GatewayError } from '../base/errors.ts';

/** Whose containers are meant: no other key sees them. */
export type ContainerOwner = Pick<Caller, 'keyId' | 'workspaceId' | 'organizationId'>;

/** Domains that a container may reach; null: it has no network. */
type Domains = readonly string[] | null;

export interface WantedContainer {
  /** A container of this name is created if the key has none. Absent: a new container with a generated name. */
  name?: string | undefined;
  /** Undefined: as it is, and none for a new one. */
  domains?: Domains | undefined;
}

/** A file of the workspace that was copied into a container. */
export interface CopiedFile {
  /** Below the folder for files. */
  path: string;
  /** When it was written, in whole seconds since 1970: archives keep no more of it. */
  second: number;
}

export interface StoredContainer {
  id: string;
  organizationId: string;
  workspaceId: string;
  keyId: string;
  name: string;
  domains: Domains;
  copied: Readonly<Record<string, CopiedFile>>;
  blobId: string | null;
  bytes: number;
  version: number;
  createdAt: Date;
  usedAt: Date;
  expiresAt: Date;
  /** When a use ended whose files could not be stored; null once a later one has stored its files. */
  unsavedAt: Date | null;
}

/** A file that code in a container has made. */
export interface ContainerFile {
  id: string;
  /** Below the folder for files. */
  path: string;
  bytes: number;
  changedAt: Date;
}

const NAME_LENGTH = 15;
const SIGNS = '0123456789abcdefghijklmnopqrstuvwxyz';

const MADE_UP = 'cntr_';

/** The name of a container that the client did not name: 77 random bits. */
export function madeUpName(): string {
  return `${MADE_UP}${Array.from({ length: NAME_LENGTH }, () => SIGNS[randomInt(SIGNS.length)]).join('')}`;
}

export function isMadeUp(name: string): boolean {
  return name.startsWith(MADE_UP);
}

/** The id of the file at a path: the same for as long as the container exists. */
export function fileIdOf(containerId: string, path: string): string {
  return `cfile_${createHash('sha256').update(`${containerId}\0${path}`).digest('hex').slice(0, 32)}`;
}

function hasDomains(container: Pick<StoredContainer, 'domains'>, wanted: Domains): boolean {
  const { domains } = container;
  if (domains === null || wanted === null) return domains === wanted;
  const all = new Set([...domains, ...wanted]);
  return all.size === new Set(domains).size && all.size === new Set(wanted).size;
}

/** @throws GatewayError 409 */
export function checkDomains(container: StoredContainer, wanted: Domains | undefined, path: string): void {
  if (wanted === undefined || hasDomains(container, wanted)) return;
  const { name, domains } = container;
  const has = domains === null ? 'no network' : `the network ${domains.join(', ')}`;
  throw new GatewayError('invalid_request', `the container ${name} was started with ${has}, which cannot be changed`, {
    status: 409,
    path,
  });
}
