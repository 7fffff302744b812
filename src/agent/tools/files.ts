/** Reading, writing and editing files of the workspace, and of the sandbox around it. */
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Arguments, cut, type Tool, type ToolContext, ToolError } from './tool.ts';

/** Larger files are for the shell. */
const LARGEST_FILE_BYTES = 10 * 1024 * 1024;
const DEFAULT_LINES = 2_000;

const filePath = { type: 'string', description: 'Path of the file, absolute or relative to the workspace.' };

function fileOf({ path: name }: Arguments, { folder }: ToolContext): string {
  return path.resolve(folder, String(name));
}

/** Throws ToolError if it is not a text file of a size that can be read at once. */
async function readText(file: string): Promise<string> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    throw new ToolError(error.code === 'ENOENT' ? `there is no file ${file}` : error.message);
  });
  if (!found.isFile()) throw new ToolError(`${file} is not a file`);
  if (found.size > LARGEST_FILE_BYTES)
    throw new ToolError(`${file} has ${found.size} bytes: use the shell for parts of it`);
  const bytes = await readFile(file);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ToolError(`${file} is not UTF-8 text`);
  }
}

async function write(file: string, text: string): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
}

/** Turns a rejection into a ToolError, because the model can act on it. */
async function asToolError<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: Error) => {
    throw error instanceof ToolError ? error : new ToolError(error.message);
  });
}

export const readFileTool: Tool = {
  name: 'read_file',
  description: 'Returns the text of a file, or some of its lines.',
  parameters: {
    type: 'object',
    properties: {
      path: filePath,
      first_line: { type: 'integer', description: 'Begins with 1, the default.' },
      lines: { type: 'integer', description: `How many lines: ${DEFAULT_LINES} by default.` },
    },
    required: ['path'],
  },
  kind: 'read',
  needsConsent: false,
  title: ({ path: name }) => `read ${String(name)}`,
  async run(args, context) {
    const text = await asToolError(readText(fileOf(args, context)));
    const lines = text.split('\n');
    const first = Math.max(Number(args['first_line'] ?? 1), 1) - 1;
    const end = first + Math.max(Number(args['lines'] ?? DEFAULT_LINES), 1);
    const chosen = cut(lines.slice(first, end).join('\n'));
    const isWhole = first === 0 && end >= lines.length;
    return isWhole ? chosen : `[lines ${first + 1} to ${Math.min(end, lines.length)} of ${lines.length}]\n${chosen}`;
  },
};

export const writeFileTool: Tool = {
  name: 'write_file',
  description: 'Writes a file, with the folders above it; replaces a file that exists.',
  parameters: {
    type: 'object',
    properties: { path: filePath, content: { type: 'string', description: 'The whole new content.' } },
    required: ['path', 'content'],
  },
  kind: 'edit',
  needsConsent: true,
  title: ({ path: name }) => `write ${String(name)}`,
  async run(args, context) {
    const file = fileOf(args, context);
    await asToolError(write(file, String(args['content'])));
    return `wrote ${file}`;
  },
};

export const editFileTool: Tool = {
  name: 'edit_file',
  description:
    'Replaces a text in a file. The old text must occur exactly as given, and only once, unless all occurrences are to be replaced.',
  parameters: {
    type: 'object',
    properties: {
      path: filePath,
      old_text: { type: 'string', description: 'With enough lines around it to be unique.' },
      new_text: { type: 'string' },
      replace_all: { type: 'boolean' },
    },
    required: ['path', 'old_text', 'new_text'],
  },
  kind: 'edit',
  needsConsent: true,
  title: ({ path: name }) => `edit ${String(name)}`,
  async run(args, context) {
    const file = fileOf(args, context);
    const [before, after] = [String(args['old_text']), String(args['new_text'])];
    if (before === '') throw new ToolError('old_text is empty: use write_file for a new file');
    const parts = (await asToolError(readText(file))).split(before);
    const found = parts.length - 1;
    if (found === 0) throw new ToolError(`${file} does not contain old_text`);
    if (found > 1 && args['replace_all'] !== true) {
      throw new ToolError(`${file} contains old_text ${found} times: give more lines around it, or replace_all`);
    }
    await asToolError(write(file, parts.join(after)));
    return `replaced ${found} ${found === 1 ? 'occurrence' : 'occurrences'} in ${file}`;
  },
};
