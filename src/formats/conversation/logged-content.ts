/** The content of a request as the content log keeps it: JSON texts of its members. */
import type { JsonDocument } from '../../base/json.ts';

export type LoggedContent =
  /** `messages`: a list of messages, or the content of a single one. `system`: content of instructions outside of them. */
  | { messages: string; system?: string | undefined }
  /** A text, for formats without messages. */
  | { prompt: string };

/** A member as the client sent it; undefined when absent. */
export function rawMember({ bytes, members }: JsonDocument, key: string): string | undefined {
  const found = members.find((member) => member.key === key);
  return found && bytes.toString('utf8', found.valueStart, found.valueEnd);
}

/** The members of a request whose messages, and instructions outside of them, are members of these names. */
export function loggedMessages(document: JsonDocument, messages: string, system?: string): LoggedContent {
  return {
    messages: rawMember(document, messages) ?? '[]',
    ...(system !== undefined && { system: rawMember(document, system) }),
  };
}
