/** `svc:code_interpreter`: runs a program in Python for each call. */
import { textOf } from '../../../formats/conversation/fields.ts';
import { aboutEnvironment, environmentOf, inContainer } from '../container/index.ts';
import { type ServerTool, ToolError } from '../tool.ts';
import { ABOUT_COMMANDS, runCommands, told } from './commands.ts';
import { checkSettings } from './settings.ts';

const LANGUAGE = 'python';
/** UTF-16 units. */
const LONGEST_CODE = 25_000;
/** Ends the program in the shell's here-document; a program with this line is refused. */
const END = 'END_OF_THE_PROGRAM_59f3c1';

export const codeInterpreter: ServerTool = {
  name: 'svc:code_interpreter',
  check: (settings, path) => checkSettings(settings, path, ['auto', 'svc']),
  begin(settings, path, installation) {
    const environment = environmentOf(settings);
    return inContainer(path, installation, environment, (containers) => ({
      functionName: 'code_interpreter',
      description:
        `Runs a program in Python 3. Returns what it prints and its exit code. ${aboutEnvironment(environment)} ` +
        ABOUT_COMMANDS,
      parameters: {
        type: 'object',
        properties: { code: { type: 'string', description: 'The program', minLength: 1, maxLength: LONGEST_CODE } },
        required: ['code'],
        additionalProperties: false,
      },
      async run(input, running) {
        const code = textOf(input['code']);
        if (code.includes(END)) throw new ToolError(`the program must not contain ${END}`);
        const command = `python3 - <<'${END}'\n${code}\n${END}\n`;
        const { outputs, where } = await runCommands({ commands: [command] }, { containers, environment }, running);
        const output = outputs[0]!;
        const { stdout, stderr, exitCode, ended } = output;
        const item = { code, language: LANGUAGE, stdout, stderr, exitCode, ...where };
        return {
          result: JSON.stringify(told(output)),
          item: { ...item, ...(ended !== undefined && { error: ended }) },
        };
      },
      failure: (error, input) => ({ item: { code: textOf(input['code']), language: LANGUAGE, error } }),
    }));
  },
};
