/** A stored response, and how it is shown. */
import { parseJson, scanMembers } from '../base/json.ts';
import { patchMembers } from '../base/json-edits.ts';
import type { Fields } from '../formats/conversation/fields.ts';

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** Its row, contents aside. */
export interface StoredResponse {
  /** `resp_...` */
  id: string;
  organizationId: string;
  workspaceId: string;
  keyHash: string;
  status: ResponseStatus;
  previousId: string | null;
  conversationId: string | null;
  background: boolean;
  streamed: boolean;
  createdAt: Date;
  expiresAt: Date;
  /** The process that runs it. */
  claim: string | null;
  /** Unless it has ended by then, that process is dead. */
  claimedUntil: Date | null;
  dataKey: Buffer;
  /** Of its encrypted input and answer. */
  bytes: number;
  /** Of the items of its input: those that its conversation had before. */
  contextItems: number;
}

/** What is encrypted, as JSON. */
export interface Contents {
  /** A list: the items of its conversation, then those that the request added. Without those of earlier responses. */
  input: string;
  /** The response as the client gets it. */
  answer: string;
}

export function isOver({ status }: Pick<StoredResponse, 'status'>): boolean {
  return status !== 'queued' && status !== 'in_progress';
}

/** Its process died: nobody will finish it. */
export function isLost({ status, claimedUntil }: StoredResponse, now: number): boolean {
  return status === 'in_progress' && claimedUntil !== null && claimedUntil.getTime() <= now;
}

const LOST = { code: 'server_error', message: 'the gateway process that ran this response has ended' };

/** The response as JSON text, with the status of its row: a process that dies cannot change the answer. */
function shownText(row: StoredResponse, answer: string, now: number): string {
  const lost = isLost(row, now) || (row.status === 'failed' && wasRunning(answer));
  const edits = [{ key: 'status', json: JSON.stringify(lost ? 'failed' : row.status) }];
  if (lost) edits.push({ key: 'error', json: JSON.stringify(LOST) });
  return patchMembers(answer, scanMembers(answer), edits);
}

export function shown(row: StoredResponse, answer: string, now: number): Fields {
  return parseJson(shownText(row, answer, now)) as Fields;
}

function wasRunning(answer: string): boolean {
  const status = memberOf(answer, 'status');
  return status === '"in_progress"' || status === '"queued"';
}

/** The JSON text of one member; undefined if there is none. */
export function memberOf(json: string, key: string): string | undefined {
  const member = scanMembers(json).findLast((each) => each.key === key);
  return member && json.slice(member.valueStart, member.valueEnd);
}

/** The generation id of a response, and the other way round: they differ in their prefix. */
export function generationIdOf(responseId: string): string {
  return responseId.replace(/^resp_/, 'gen-');
}

export function responseIdOf(generationId: string): string {
  return generationId.replace(/^gen-/, 'resp_');
}
