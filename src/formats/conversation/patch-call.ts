/** OpenAI's tool `apply_patch` (platform.openai.com/docs/guides/tools-apply-patch): as a function, and the operations of its calls. */
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { FunctionTool } from './conversation.ts';
import { type Fields, fieldsOf, textOf } from './fields.ts';

const LONGEST_PATH = 1_000;
/** UTF-16 units. */
const LONGEST_DIFF = 200_000;

export const APPLY_PATCH: FunctionTool & { parameters: Fields; description: string } = {
  type: 'function',
  name: 'apply_patch',
  description:
    'Creates, updates or deletes one file. The diff of create_file has the lines of the file, each with + in front. ' +
    'The diff of update_file has sections of lines that begin with a space (unchanged), - (removed) or + (added), with ' +
    'enough unchanged lines around a change to find it; "@@ line" names a line of the file before a section, such as that of a function.',
  parameters: {
    type: 'object',
    properties: {
      type: { type: 'string', enum: ['create_file', 'update_file', 'delete_file'] },
      path: {
        type: 'string',
        description: 'The file, relative to the folder of the project',
        minLength: 1,
        maxLength: LONGEST_PATH,
      },
      diff: { type: 'string', description: 'Not for delete_file', maxLength: LONGEST_DIFF },
    },
    required: ['type', 'path'],
    additionalProperties: false,
  },
};

/** @param input arguments of the function; empty for arguments that are not valid */
export function patchOperation({ type, path, diff }: Fields): { type: string; path: string; diff?: string } {
  return {
    type: textOf(type),
    path: textOf(path),
    ...(typeof diff === 'string' && type !== 'delete_file' && { diff }),
  };
}

/** @param written arguments as the model wrote them. An operation without a known type has an empty diff, which no client can apply. */
export function writtenOperation(written: string): Fields {
  let input: Fields;
  try {
    input = fieldsOf(parseJson(written));
  } catch {
    input = {};
  }
  const operation = patchOperation(input);
  return operation.type === 'delete_file' ? operation : { ...operation, diff: operation.diff ?? '' };
}

export function patchArguments(operation: unknown): string {
  return stringifyJson(patchOperation(fieldsOf(operation)));
}
