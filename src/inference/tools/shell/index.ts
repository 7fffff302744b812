/** `svc:bash` and `svc:shell`: commands in a container of the request. Not here: how code is isolated (`sandboxes/`). */
export { bash } from './bash.ts';
export { shell } from './shell.ts';
