/** Clients of this format cannot defer tools, so there are no searches to show. */
import type { SearchTrace } from '../conversation/deferred-search.ts';

export const searchTrace: SearchTrace = { show: () => [], read: () => ({ steps: new Map(), taken: new Set() }) };
