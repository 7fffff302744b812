import { runCommand } from './command.ts';
import type { Tool } from './tool.ts';

const DEFAULT_TIMEOUT_S = 120;
const LONGEST_TIMEOUT_S = 1_800;

export const shell: Tool = {
  name: 'shell',
  description:
    'Runs a command line with bash in the workspace and returns its output and exit code. Each call is a new shell: ' +
    'the working folder and variables do not carry over. Processes that it leaves in the background are ended.',
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'string', description: 'The command line.' },
      timeout_seconds: {
        type: 'integer',
        description: `After so many seconds the command is ended: ${DEFAULT_TIMEOUT_S} by default, at most ${LONGEST_TIMEOUT_S}.`,
      },
    },
    required: ['command'],
  },
  kind: 'execute',
  needsConsent: true,
  title: ({ command }) => String(command),
  async run({ command, timeout_seconds: asked }, context) {
    const seconds = Math.min(Math.max(Number(asked ?? DEFAULT_TIMEOUT_S), 1), LONGEST_TIMEOUT_S);
    const { output, code, timedOut } = await runCommand(['bash', '-c', String(command)], seconds * 1_000, context);
    const end = timedOut ? `ended after ${seconds} s` : code === null ? 'ended by a signal' : `exit code ${code}`;
    return `${output}${output === '' || output.endsWith('\n') ? '' : '\n'}[${end}]`;
  },
};
