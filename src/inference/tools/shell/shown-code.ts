/** How clients see calls that run code: in the gateway's own words, or in those of the vendor whose tool the request declares. */
import type { Fields } from '../../../formats/conversation/fields.ts';
import type { ToolOutcome } from '../tool.ts';
import type { CommandOutput } from './commands.ts';

/** Names of vendors for calls that run code. */
export const SHOWN_CODE = ['code_interpreter', 'code_execution', 'bash_code_execution'] as const;
export type ShownCode = (typeof SHOWN_CODE)[number];
type Shown = Pick<ToolOutcome, 'item' | 'block'>;

/** @param where the container, and the files that were made */
export function shownOutput(as: ShownCode, code: string, output: CommandOutput, where: Fields): Shown {
  const { stdout, stderr, exitCode, timedOut } = output;
  if (as === 'code_interpreter') {
    const logs = `${stdout}${stderr}`;
    return { item: { code, outputs: logs === '' ? [] : [{ type: 'logs', logs }], ...where } };
  }
  if (timedOut) return { item: where, block: errorBlock(as, 'execution_time_exceeded') };
  const content = { type: `${as}_result`, stdout, stderr, return_code: exitCode, content: [] };
  return { item: where, block: { type: `${as}_tool_result`, content } };
}

export function shownFailure(as: ShownCode, code: string, error: string): Shown {
  return as === 'code_interpreter' ? { item: { code, error } } : { item: {}, block: errorBlock(as, 'unavailable') };
}

function errorBlock(as: ShownCode, code: string): ToolOutcome['block'] {
  return { type: `${as}_tool_result`, content: { type: `${as}_tool_result_error`, error_code: code } };
}
