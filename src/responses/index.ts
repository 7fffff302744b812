/**
 * Stored responses and conversations: `store`, `background`, `previous_response_id` and `conversation` of `POST /responses`,
 * `/responses/{id}`, `/conversations`, and compaction. The state is the gateway's own, whatever provider answers; providers always get
 * stateless requests with the whole input. Encrypted at rest, visible in one workspace, removed after its retention.
 *
 * Not here: the format (`formats/responses/`), how a request is answered (`inference/`), the log of inputs and outputs
 * (`transcripts/`).
 */
import type { Queryable } from '../storage/database.ts';
import { deleteConversationsOf } from './conversations/conversations.sql.ts';
import { deleteResponsesOf } from './store.ts';

export { compactionOperations } from './compaction/operations.ts';
export { conversationOperations } from './conversations/operations.ts';
export { answerWithState } from './create.ts';
export { responseMigrations } from './migrations/index.ts';
export { createResponses, type ResponseOperationParts, responseOperations } from './operations.ts';
export { sealedConversationKeys, sealedResponseKeys } from './sealed.ts';

/** For `ended` of workspaces. */
export async function endResponses(tx: Queryable, workspaceId: string): Promise<void> {
  await deleteResponsesOf(tx, workspaceId);
  await deleteConversationsOf(tx, workspaceId);
}
