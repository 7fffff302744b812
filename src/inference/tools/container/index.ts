/** Containers as the tools of a request use them. Not here: what containers are (`containers/`). */
export {
  aboutEnvironment,
  checkEnvironment,
  checkSleep,
  type Environment,
  environmentBeside,
  environmentOf,
} from './environment.ts';
export { inContainer } from './in-container.ts';
export { noSandbox, RequestContainers } from './request-containers.ts';
export { shownFiles } from './shown-files.ts';
export { textAt } from './text-at.ts';
