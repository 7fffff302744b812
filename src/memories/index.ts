/**
 * Memories: a folder of texts for each end user or session of a workspace, which a model keeps over requests
 * (`inference/tools/memory`). Not here: files that clients upload (`files/`) and those of containers (`containers/`).
 */
export { Memories, type MemoryFolder, MemoryFull, type MemoryOwner } from './memories.ts';
export { memoryMigrations } from './migrations/index.ts';
export { type MemoryOperationParts, memoryOperations } from './operations.ts';
export { sealedMemories } from './sealed.ts';
export { endMemories } from './store.ts';
