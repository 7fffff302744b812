import { runCommand } from './command.ts';
import { type Tool, ToolError } from './tool.ts';

const TIMEOUT_MS = 60_000;
const MOST_MATCHES_PER_FILE = 50;
/** Folders that a search leaves out. */
const SKIPPED = ['.git', 'node_modules', '__pycache__', '.venv'];

export const searchFiles: Tool = {
  name: 'search_files',
  description:
    'Searches the files below a folder: for lines that match a pattern, for files whose name matches, or both. Returns path:line:text, or paths.',
  parameters: {
    type: 'object',
    properties: {
      pattern: { type: 'string', description: 'Extended regular expression (POSIX) for a line.' },
      name: { type: 'string', description: 'Glob for the file name, such as *.ts.' },
      folder: { type: 'string', description: 'The workspace by default.' },
      ignore_case: { type: 'boolean' },
    },
    required: [],
  },
  kind: 'search',
  needsConsent: false,
  title: ({ pattern, name }) => `search for ${String(pattern ?? name ?? '')}`,
  async run({ pattern, name, folder, ignore_case: ignoreCase }, context) {
    if (pattern === undefined && name === undefined) throw new ToolError('search_files needs a pattern or a name');
    const where = String(folder ?? '.');
    const argv: [string, ...string[]] =
      pattern === undefined
        ? ['find', where, ...skippedByFind(), ignoreCase === true ? '-iname' : '-name', String(name), '-print']
        : [
            ...(['grep', '-rInE', `--max-count=${MOST_MATCHES_PER_FILE}`] as const),
            ...SKIPPED.map((each) => `--exclude-dir=${each}`),
            ...(ignoreCase === true ? ['-i'] : []),
            ...(name === undefined ? [] : [`--include=${String(name)}`]),
            ...['-e', String(pattern), '--', where],
          ];
    const { output, code, timedOut } = await runCommand(argv, TIMEOUT_MS, context);
    if (timedOut) throw new ToolError(`the search took more than ${TIMEOUT_MS / 1_000} s: search in a smaller folder`);
    if (output === '') return 'no match';
    return code === 0 || code === 1 ? output : `${output}[exit code ${code}]`;
  },
};

function skippedByFind(): string[] {
  return ['(', ...SKIPPED.flatMap((name, at) => [...(at === 0 ? [] : ['-o']), '-name', name]), ')', '-prune', '-o'];
}
