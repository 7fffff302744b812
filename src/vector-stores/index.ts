/**
 * Vector stores: the texts of files of a workspace, split into chunks that searches find by keywords, and by vectors
 * where an embedding model is configured ([decision](../../docs/decisions/026-vector-stores.md)). Files are added in the
 * background (`add-job.ts`).
 *
 * Not here: the files (`files/`), the tool of a model that searches (`inference/tools/file-search.ts`).
 */
export { type AddJobParts, addFileJob } from './add-job.ts';
export { type Filter, readFilter } from './filters.ts';
export { vectorStoreMigrations } from './migrations/index.ts';
export { vectorStoreOperations } from './operations.ts';
export type { VectorStoreParts } from './parts.ts';
export { type Ranking, readRanking } from './ranking-options.ts';
export { LONGEST_QUERY, MOST_RESULTS } from './schema.ts';
export { sealedVectorStoreKeys } from './sealed.ts';
export { type FoundChunk, VectorSearch } from './search.ts';
export { storedStoreId } from './shape.ts';
export { endVectorStores } from './store.ts';
export { tidyVectorStoresJob } from './tidy-job.ts';
