/** The commands of tools that edit texts, as functions declare them. */
import type { Fields } from '../../../formats/conversation/fields.ts';

export const LONGEST_PATH = 512;
/** UTF-16 units of a file. */
export const LONGEST_TEXT = 256 * 1024;

const string = (description: string, maxLength: number) => ({ type: 'string', description, maxLength });

/** @param more further commands, and the members that they need */
export function editingParameters(more: readonly string[], members: Fields = {}): Fields {
  return {
    type: 'object',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', ...more] },
      path: string('A file, or a folder for view', LONGEST_PATH),
      view_range: {
        type: 'array',
        description: 'Of view: first and last line, from 1; -1 is the end',
        items: { type: 'integer' },
        minItems: 2,
        maxItems: 2,
      },
      file_text: string('Of create: the text of the file', LONGEST_TEXT),
      old_str: string('Of str_replace: a text that occurs once', LONGEST_TEXT),
      new_str: string('Of str_replace: the text in its place', LONGEST_TEXT),
      insert_line: { type: 'integer', description: 'Of insert: the line after which to insert; 0 for the beginning' },
      insert_text: string('Of insert: the text', LONGEST_TEXT),
      ...members,
    },
    required: ['command'],
    additionalProperties: false,
  };
}
