/**
 * The users of sandboxes, where the gateway runs as root: one for each sandbox, without an account. The user follows from the id, so
 * the files of a workspace keep their owner, and nothing has to remember who has which. Two sandboxes of the same user are still
 * separated by their namespaces.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface UserRange {
  first: number;
  count: number;
}

/** Left free by the convention of systemd for user ids. */
const USUAL: UserRange = { first: 0x7000_0000, count: 0x0fff_ffff };
/** In a container that has few users. */
const NARROW: UserRange = { first: 30_000, count: 30_000 };

/** @returns null where no user can be given */
export function userRange(map: string = readMap()): UserRange | null {
  const mapped = map
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [number, number, number])
    .map(([first, , count]) => ({ first, count }));
  const fits = ({ first, count }: UserRange) =>
    mapped.some((each) => each.first <= first && first + count <= each.first + each.count);
  return [USUAL, NARROW].find(fits) ?? null;
}

function readMap(): string {
  try {
    return readFileSync('/proc/self/uid_map', 'utf8');
  } catch {
    return '';
  }
}

export function userOf(id: string, { first, count }: UserRange): number {
  return first + (createHash('sha256').update(id).digest().readUInt32BE(0) % count);
}
