/** `svc:code_interpreter`: runs a program in Python for each call. For code execution of vendors, a command where theirs takes one. */
import { type Fields, listOf, textOf } from '../../../formats/conversation/fields.ts';
import type { ToolsRunning } from '../../turns/gateway-tools.ts';
import { aboutEnvironment, environmentOf, inContainer } from '../container/index.ts';
import { type ServerTool, ToolError } from '../tool.ts';
import { ABOUT_COMMANDS, type CommandOutput, runCommands, told } from './commands.ts';
import { checkSettings } from './settings.ts';
import { SHOWN_CODE, type ShownCode, shownFailure, shownOutput } from './shown-code.ts';

const LANGUAGE = 'python';
/** UTF-16 units. */
const LONGEST_CODE = 25_000;
/** Ends the program in the shell's here-document; a program with this line is refused. */
const END = 'END_OF_THE_PROGRAM_59f3c1';
/** The request's `include` for what programs print. */
const INCLUDE_OUTPUTS = 'code_interpreter_call.outputs';

export const CODE_TOOL = 'svc:code_interpreter';

export const codeInterpreter: ServerTool = {
  name: CODE_TOOL,
  check: (settings, path) => checkSettings(settings, path, ['auto', 'svc']),
  begin(settings, path, installation, _declared, shownName) {
    const environment = environmentOf(settings);
    const as = SHOWN_CODE.find((name) => name === shownName);
    const argument = as === 'bash_code_execution' ? 'command' : 'code';
    const what = argument === 'code' ? 'a program in Python 3' : 'a command in bash';
    const field = as === undefined ? `${path}.environment` : path.replace(/\.parameters$/, '.container');
    return inContainer(
      path,
      installation,
      environment,
      (containers) => ({
        functionName: as ?? 'code_interpreter',
        description:
          `Runs ${what}. Returns what it prints and its exit code. ${aboutEnvironment(environment)} ` + ABOUT_COMMANDS,
        parameters: {
          type: 'object',
          properties: {
            [argument]: { type: 'string', description: 'What to run', minLength: 1, maxLength: LONGEST_CODE },
          },
          required: [argument],
          additionalProperties: false,
        },
        async run(input, running) {
          const code = textOf(input[argument]);
          const command = argument === 'code' ? inPython(code) : code;
          if (as === 'code_interpreter') reportStart(code, running);
          const { outputs, where } = await runCommands({ commands: [command] }, { containers, environment }, running);
          const output = outputs[0]!;
          const shown = as === undefined ? ownItem(code, output, where) : shownOutput(as, code, output, where);
          if (as === 'code_interpreter') {
            report('completed', {}, running);
            if (!includesOutputs(running)) shown.item['outputs'] = null;
          }
          return { result: JSON.stringify(told(output)), ...shown };
        },
        failure: (error, input) => failure(as, textOf(input[argument]), error),
      }),
      field,
    );
  },
};

function inPython(code: string): string {
  if (code.includes(END)) throw new ToolError(`the program must not contain ${END}`);
  return `python3 - <<'${END}'\n${code}\n${END}\n`;
}

function ownItem(code: string, { stdout, stderr, exitCode, ended }: CommandOutput, where: Fields): { item: Fields } {
  const item = { code, language: LANGUAGE, stdout, stderr, exitCode, ...where };
  return { item: { ...item, ...(ended !== undefined && { error: ended }) } };
}

function failure(as: ShownCode | undefined, code: string, error: string) {
  return as === undefined ? { item: { code, language: LANGUAGE, error } } : shownFailure(as, code, error);
}

function reportStart(code: string, running: ToolsRunning): void {
  report('in_progress', {}, running);
  running.report?.({ event: 'code_interpreter_call_code.delta', members: { delta: code } });
  running.report?.({ event: 'code_interpreter_call_code.done', members: { code } });
  report('interpreting', {}, running);
}

function report(step: string, members: Fields, running: ToolsRunning): void {
  running.report?.({ event: `code_interpreter_call.${step}`, members });
}

function includesOutputs({ request }: ToolsRunning): boolean {
  return listOf(request.document.member('include')).includes(INCLUDE_OUTPUTS);
}
