/** Reads the reply to a request that a tool or a plugin has made (`nested.ts`). */
import { type Fields, fieldsOf, listOf, textOf } from '../formats/conversation/fields.ts';

/** The text of a chat reply; '' if it has none. */
export function textOfReply(reply: Fields): string {
  return textOf(fieldsOf(fieldsOf(listOf(reply['choices'])[0])['message'])['content']);
}
