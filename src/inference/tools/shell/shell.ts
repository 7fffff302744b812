/** `svc:shell`: several commands for each call, in the words of OpenAI's shell tool. */
import { type Fields, listOf, textOf } from '../../../formats/conversation/fields.ts';
import { aboutEnvironment } from '../container/index.ts';
import type { ServerTool } from '../tool.ts';
import { ABOUT_COMMANDS, type CommandOutput, LONGEST_COMMAND, LONGEST_OUTPUT, runCommands, told } from './commands.ts';
import { checkSettings, requested } from './settings.ts';

const ENGINES = ['auto', 'svc'];
const MAX_COMMANDS = 10;

const DECLARED = {
  functionName: 'shell',
  description: 'Runs commands of a shell, one after the other. Returns the output and exit code of each.',
  parameters: {
    type: 'object',
    properties: {
      commands: {
        type: 'array',
        items: { type: 'string', minLength: 1, maxLength: LONGEST_COMMAND },
        minItems: 1,
        maxItems: MAX_COMMANDS,
      },
      timeout_ms: { type: 'integer', description: 'Time for each command, in milliseconds', minimum: 1 },
      max_output_length: {
        type: 'integer',
        description: 'Characters of all outputs',
        minimum: 1,
        maximum: LONGEST_OUTPUT,
      },
    },
    required: ['commands'],
    additionalProperties: false,
  },
};

export const shell: ServerTool = {
  name: 'svc:shell',
  check: (settings, path) => checkSettings(settings, path, ENGINES),
  begin: (settings, path, installation) =>
    requested(settings, path, installation, {
      declared: DECLARED,
      inContainer: (containers, environment) => ({
        ...DECLARED,
        description: `${DECLARED.description} ${aboutEnvironment(environment)} ${ABOUT_COMMANDS}`,
        async run(input, running) {
          const action = actionOf(input);
          const { commands, timeout_ms: timeoutMs, max_output_length: outputLength } = action;
          const place = { containers, environment };
          const { outputs, where } = await runCommands({ commands, timeoutMs, outputLength }, place, running);
          return { result: JSON.stringify(outputs.map(told)), item: { action, output: outputs.map(shown), ...where } };
        },
        failure: (error, input) => ({ item: { action: actionOf(input), error } }),
      }),
    }),
};

interface Action {
  commands: string[];
  timeout_ms?: number;
  max_output_length?: number;
}

/** The call as the model requests it. @param input valid; empty for arguments that are not */
function actionOf(input: Fields): Action {
  const { timeout_ms: time, max_output_length: length } = input;
  return {
    commands: listOf(input['commands']).map(textOf),
    ...(typeof time === 'number' && { timeout_ms: time }),
    ...(typeof length === 'number' && { max_output_length: length }),
  };
}

function shown({ stdout, stderr, exitCode, ended, timedOut }: CommandOutput): object {
  const outcome = timedOut ? { type: 'timeout' } : { type: 'exit', exitCode };
  return { stdout, stderr, outcome, ...(ended !== undefined && { error: ended }) };
}
