/**
 * `svc:bash` and `svc:shell`: commands in the sandbox of a request. Not here: how code is isolated (`sandboxes/`).
 */
export { bash } from './bash.ts';
export { isOwnedByRequest, RequestSandboxes } from './request-sandboxes.ts';
export { shell } from './shell.ts';
