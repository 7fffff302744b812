/**
 * The web console: its built files (`console/` at the root of the project, bundled by `build/console.ts`), and the
 * sessions of the browsers that are signed in to it. Everything else that the console shows and changes it asks the
 * public operations for, with the rights of the key that signed in. Not here: the consent page and tokens of workloads
 * (`sign-in/`).
 */
export { ConsoleFiles } from './files.ts';
export { consoleMigrations } from './migrations/index.ts';
export { OidcSignIn } from './oidc/sign-in.ts';
export { type ConsoleParts, consoleOperations } from './operations.ts';
export { ConsoleSessions } from './sessions.ts';
