/**
 * Containers: files that outlive the request whose model works on them, each of one key. While a request, or an operation,
 * uses a container, a sandbox of this process has its files (`sandboxes/`); afterwards they are a snapshot among the blobs, so
 * that the next use can be in any process. Nothing but files is kept: commands end with all processes that they started.
 *
 * Not here: the tools that run commands (`inference/tools`), the isolation of code (`sandboxes/`), files of a workspace (`files/`).
 */
export { type ContainerFile, checkDomains, type WantedContainer } from './container.ts';
export { Containers, isOwnedByContainer } from './containers.ts';
export { containerMigrations } from './migrations/index.ts';
export { type ContainerOperationParts, containerOperations } from './operations.ts';
export { endContainers, expireContainersJob } from './removal.ts';
export type { ContainerUse, CopyableFile } from './use.ts';
