/** Reads the reply to a request that a tool or a plugin has made (`nested.ts`). */
import { type Fields, fieldsOf, listOf, textOf } from '../formats/conversation/fields.ts';

/** The text of a reply in the responses format; '' if it has none. */
export function textOfResponse(reply: Fields): string {
  const contents = listOf(reply['output']).flatMap((item) => listOf(fieldsOf(item)['content']).map(fieldsOf));
  return contents.map(({ type, text }) => (type === 'output_text' ? textOf(text) : '')).join('');
}

/** The text of a chat reply; '' if it has none. */
export function textOfReply(reply: Fields): string {
  return textOf(fieldsOf(fieldsOf(listOf(reply['choices'])[0])['message'])['content']);
}
