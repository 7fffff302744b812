/**
 * Customers' own keys at providers (BYOK): kept sealed, and opened in memory for the requests that may use them. Not here:
 * which endpoint a request goes to, and what is charged for it (`inference`, `spend`).
 */
export type { OwnKey, OwnKeyCaller, OwnKeys } from './own-keys.ts';
