/** `svc:files`: lists, reads, writes and edits the files of the workspace. */
import type { Author } from '../../audit/index.ts';
import { GatewayError } from '../../base/errors.ts';
import type { WorkspaceFile, WorkspaceFiles } from '../../files/index.ts';
import { type Fields, textOf, textOrUndefined } from '../../formats/conversation/fields.ts';
import type { ToolsRunning } from '../turns/gateway-tools.ts';
import { type ServerTool, ToolError, type ToolOutcome } from './tool.ts';

/** The newest files that a list has. */
const MOST_LISTED = 100;
/** UTF-16 units of a text that is read at once, and of one that is written. */
const LONGEST_READ = 30_000;
const LONGEST_WRITTEN = 200_000;
const LONGEST_NAME = 255;
const MOST_BYTES = 4 * 1024 * 1024;
const TEXT = /^(?:text\/|application\/(?:json|x-ndjson)$)/;

const DECLARED = {
  functionName: 'files',
  description:
    'The files of the workspace, which last. list: the newest files. read: the text of a file, from offset on. write: a new text ' +
    'file. edit: replaces old_text, which must occur once, by new_text. Only files that were written with this tool can be overwritten or edited.',
  parameters: {
    type: 'object',
    properties: {
      operation: { type: 'string', enum: ['list', 'read', 'write', 'edit'] },
      filename: { type: 'string', description: 'Not for list', minLength: 1, maxLength: LONGEST_NAME },
      content: { type: 'string', description: 'For write', maxLength: LONGEST_WRITTEN },
      old_text: { type: 'string', description: 'For edit', minLength: 1, maxLength: LONGEST_WRITTEN },
      new_text: { type: 'string', description: 'For edit', maxLength: LONGEST_WRITTEN },
      offset: { type: 'integer', description: 'For read: characters to skip', minimum: 0 },
    },
    required: ['operation'],
    additionalProperties: false,
  },
};

export const files: ServerTool = {
  name: 'svc:files',
  check: () => {},
  begin: (_settings, path, { workspaceFiles }) => ({
    ...DECLARED,
    lasting: true,
    load({ request }) {
      if (request.about.region === 'global') return undefined;
      const message = `${path} requests svc:files: regional hosts serve no files`;
      return Promise.reject(new GatewayError('permission_denied', message, { path }));
    },
    run(input, running) {
      if (workspaceFiles === undefined) throw new ToolError('this gateway keeps no files');
      return new FilesCall(workspaceFiles, running).run(input);
    },
    failure: (error, input) => ({ item: { ...shownInput(input), error } }),
  }),
};

function shownInput({ operation, filename }: Fields): Fields {
  return { operation: textOf(operation), ...(typeof filename === 'string' && { filename }) };
}

class FilesCall {
  readonly #files: WorkspaceFiles;
  readonly #running: ToolsRunning;
  readonly #workspaceId: string;

  constructor(workspaceFiles: WorkspaceFiles, running: ToolsRunning) {
    this.#files = workspaceFiles;
    this.#running = running;
    this.#workspaceId = running.request.caller.workspaceId;
  }

  async run(input: Fields): Promise<ToolOutcome> {
    if (input['operation'] === 'list') {
      const listed = await this.#files.list(this.#workspaceId, MOST_LISTED);
      return { result: JSON.stringify(listed.map(toldOf)), item: shownInput(input) };
    }
    const filename = textOrUndefined(input['filename']);
    if (filename === undefined) throw new ToolError(`${textOf(input['operation'])} needs a filename`);
    const file = await this.#files.named(this.#workspaceId, filename);
    if (input['operation'] === 'read') return this.#read(existing(file, filename), input);
    const text =
      input['operation'] === 'write' ? written(input) : edited(await this.#text(existing(file, filename)), input);
    if (file !== undefined && !file.isMade) {
      throw new ToolError(`${filename} was uploaded and cannot be changed; write under another name`);
    }
    const made = await this.#files.write(this.#author(), { workspaceId: this.#workspaceId, filename, text }, file);
    return { result: JSON.stringify(toldOf(made)), item: { ...shownInput(input), file_id: made.id } };
  }

  async #read(file: WorkspaceFile, input: Fields): Promise<ToolOutcome> {
    const text = await this.#text(file);
    const offset = Number(input['offset'] ?? 0);
    const part = text.slice(offset, offset + LONGEST_READ).toWellFormed();
    const left = text.length - offset - part.length;
    const result =
      left > 0 ? `${part}\n[${left} characters follow; read on with offset ${offset + part.length}]` : part;
    return { result, item: { ...shownInput(input), file_id: file.id } };
  }

  async #text({ storedId, filename, mimeType, bytes, blobId }: WorkspaceFile): Promise<string> {
    if (!TEXT.test(mimeType)) throw new ToolError(`${filename} is not a text file: its type is ${mimeType}`);
    if (bytes > MOST_BYTES) throw new ToolError(`${filename} has ${bytes} bytes, more than ${MOST_BYTES}`);
    const { parts, signal } = this.#running;
    return (await parts.files!.read({ id: storedId, filename, mimeType, bytes, blobId }, signal)).toString('utf8');
  }

  /** The key whose model writes. */
  #author(): Author {
    const { request, parts } = this.#running;
    const { organizationId, keyHash, label, userId } = request.caller;
    const about = { requestId: request.id, sourceAddress: null, at: parts.clock.now() };
    return { organizationId, type: 'key', keyHash, keyLabel: label, userId, ...about };
  }
}

function toldOf({ id, filename, mimeType, bytes }: WorkspaceFile): object {
  return { id, filename, mime_type: mimeType, bytes };
}

function existing(file: WorkspaceFile | undefined, filename: string): WorkspaceFile {
  if (file === undefined) throw new ToolError(`there is no file ${filename}`);
  return file;
}

function written(input: Fields): string {
  const content = textOrUndefined(input['content']);
  if (content === undefined) throw new ToolError('write needs content');
  return content;
}

function edited(text: string, input: Fields): string {
  const [before, after] = [textOrUndefined(input['old_text']), textOrUndefined(input['new_text'])];
  if (before === undefined || after === undefined) throw new ToolError('edit needs old_text and new_text');
  const at = text.indexOf(before);
  if (at === -1) throw new ToolError('old_text is not in the file');
  if (text.includes(before, at + 1)) throw new ToolError('old_text is in the file more than once');
  const result = text.slice(0, at) + after + text.slice(at + before.length);
  if (result.length > MOST_BYTES) throw new ToolError('the file would become too large');
  return result;
}
