/** Ids of rows that exist implicitly, before they are first written. */
import { hash } from 'node:crypto';

/** A UUID (version 8, RFC 9562) derived from the parts; the same parts give the same UUID. */
function derivedId(...parts: readonly string[]): string {
  const digits = hash('sha256', parts.join('/'));
  const variant = ((Number.parseInt(digits.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `${variant}${digits.slice(17, 20)}`,
    digits.slice(20, 32),
  ].join('-');
}

/** The guardrail that governs a whole workspace; its row is inserted when it is first written. */
export function defaultGuardrailId(workspaceId: string): string {
  return derivedId('default-guardrail', workspaceId);
}

/** The membership that every member of the organization has in the default workspace. */
export function impliedMembershipId(workspaceId: string, userId: string): string {
  return derivedId('membership', workspaceId, userId);
}
