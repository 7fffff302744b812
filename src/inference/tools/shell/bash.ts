/** `svc:bash`: one command for each call. */
import { textOf } from '../../../formats/conversation/fields.ts';
import { aboutEnvironment } from '../container/index.ts';
import type { ServerTool } from '../tool.ts';
import { ABOUT_COMMANDS, LONGEST_COMMAND, runCommands, told } from './commands.ts';
import { checkSettings, requested } from './settings.ts';

const ENGINES = ['auto', 'native', 'svc'];

const DECLARED = {
  functionName: 'bash',
  description: 'Runs a command with bash. Returns its output and exit code.',
  parameters: {
    type: 'object',
    properties: { command: { type: 'string', description: 'The command', minLength: 1, maxLength: LONGEST_COMMAND } },
    required: ['command'],
    additionalProperties: false,
  },
};

export const bash: ServerTool = {
  name: 'svc:bash',
  check: (settings, path) => checkSettings(settings, path, ENGINES),
  begin: (settings, path, installation) =>
    requested(settings, path, installation, {
      declared: DECLARED,
      inContainer: (containers, environment) => ({
        ...DECLARED,
        description: `${DECLARED.description} ${aboutEnvironment(environment)} ${ABOUT_COMMANDS}`,
        async run(input, running) {
          const command = textOf(input['command']);
          const place = { containers, environment };
          const { outputs, where } = await runCommands({ commands: [command] }, place, running);
          const output = outputs[0]!;
          const { stdout, stderr, exitCode, ended } = output;
          return {
            result: JSON.stringify(told(output)),
            item: { command, stdout, stderr, exitCode, ...(ended !== undefined && { error: ended }), ...where },
          };
        },
        failure: (error, input) => ({ item: { command: textOf(input['command']), error } }),
      }),
    }),
};
