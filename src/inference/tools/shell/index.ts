/** `svc:bash`, `svc:shell` and `svc:code_interpreter`: commands in a container of the request. Not here: how code is isolated (`sandboxes/`). */
export { bash } from './bash.ts';
export { CODE_TOOL, codeInterpreter } from './code-interpreter.ts';
export { shell } from './shell.ts';
export { SHOWN_CODE, type ShownCode } from './shown-code.ts';
