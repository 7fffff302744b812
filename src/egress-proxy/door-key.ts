/** How a sandbox on another machine and the door know each other. */
import { createHash } from 'node:crypto';

/** The name in the door's certificate; the address of the machine may be any. */
export const DOOR_NAME = 'egress.gatehouse.internal';

/** What is kept instead of a key. */
export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}
