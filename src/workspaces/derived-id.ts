/** Ids of rows that are there before anybody wrote them. */
import { hash } from 'node:crypto';

/** A UUID (version 8, RFC 9562) that is always the same for the same parts. */
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

/** The guardrail that governs all of a workspace; its row is made when it is first written (wire/workspaces.md). */
export function defaultGuardrailId(workspaceId: string): string {
  return derivedId('default-guardrail', workspaceId);
}

/** The membership that every member of the organization has in its default workspace. */
export function impliedMembershipId(workspaceId: string, userId: string): string {
  return derivedId('membership', workspaceId, userId);
}
