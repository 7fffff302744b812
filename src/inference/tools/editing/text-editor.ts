/** `svc:text_editor`: views and edits texts in the container of the request, in the words of Anthropic's text editor. */
import type { ContainerUse } from '../../../containers/index.ts';
import { type Fields, textOf } from '../../../formats/conversation/fields.ts';
import { run } from '../../../sandboxes/index.ts';
import { Members } from '../../tool-settings.ts';
import { aboutEnvironment, environmentBeside, inContainer, textAt } from '../container/index.ts';
import { type ServerTool, ToolError } from '../tool.ts';
import { editingParameters, LONGEST_TEXT } from './commands.ts';
import { inserted, numbered, replaced } from './edits.ts';

const LIST_MS = 30_000;
const LIST_BYTES = 64 * 1024;

export const textEditor: ServerTool = {
  name: 'svc:text_editor',
  check: (settings, path) => void new Members(settings, path).word('engine', ['auto', 'svc']),
  begin(_settings, path, installation, beside) {
    const environment = environmentBeside(beside);
    return inContainer(path, installation, undefined, (containers) => ({
      functionName: 'text_editor',
      description: `Views, creates and edits text files. ${aboutEnvironment(environment)}`,
      parameters: editingParameters([]),
      async run(input, running) {
        const use = await containers.of(environment, running);
        if (input['command'] !== 'view') use.isChanged = true;
        // Of several edits of one file none may read what another one is about to replace.
        const result = await use.inOrder(() => edit(input, use));
        return { result, item: itemOf(input) };
      },
      failure: (error, input) => ({ item: { ...itemOf(input), error } }),
    }));
  },
};

function itemOf({ command, path }: Fields): Fields {
  return { command: textOf(command), filePath: textOf(path) };
}

async function edit(input: Fields, { sandbox }: ContainerUse): Promise<string> {
  const path = textOf(input['path']);
  if (path === '') throw new ToolError('path is missing');
  const text = (name: string) => {
    const value = input[name];
    if (typeof value !== 'string') throw new ToolError(`${name} is missing`);
    return value;
  };
  if (input['command'] === 'view') return view(path, input, sandbox);
  const before = await textAt(path, sandbox);
  if (input['command'] === 'create') {
    if (before !== undefined) throw new ToolError(`${path} exists already; change it with str_replace or insert`);
    await sandbox.writeFile(path, text('file_text'));
    return `File created successfully at: ${path}`;
  }
  if (before === undefined) throw new ToolError(`there is no file ${path}`);
  const after =
    input['command'] === 'str_replace'
      ? replaced(path, before, text('old_str'), textOf(input['new_str']))
      : inserted(before, input['insert_line'], text('insert_text'));
  if (after.length > LONGEST_TEXT) throw new ToolError(`a file may have at most ${LONGEST_TEXT} characters`);
  await sandbox.writeFile(path, after);
  return `The file ${path} has been edited.`;
}

/** A file, or what is in a folder. */
const LIST = 'case "$1" in -*) set -- "./$1";; esac; [ -d "$1" ] && find "$1" -maxdepth 2 -not -path "*/.*" | sort';

async function view(path: string, input: Fields, sandbox: ContainerUse['sandbox']): Promise<string> {
  const argv = ['sh', '-c', LIST, 'sh', path] as const;
  const { ending, stdout } = await run(sandbox, { argv, timeoutMs: LIST_MS, outputBytes: LIST_BYTES });
  if (ending.code === 0)
    return `Here're the files and directories up to 2 levels deep in ${path}:\n${stdout.toString()}`;
  const text = await textAt(path, sandbox);
  if (text === undefined) throw new ToolError(`there is no file ${path}`);
  return numbered(path, text, input['view_range'] as readonly unknown[] | undefined);
}
