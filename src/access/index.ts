/**
 * Access: who calls and whether they may. Organizations, members, the default workspace and the keys that everything
 * else hangs on; `authenticate` turns a request's headers into a `Caller` from memory. What a caller may spend is the
 * business of `spend/`, which models and filters apply to it that of the guardrails.
 */

export type { Access } from './access.ts';
export type { Caller, KeyKind, LimitReset } from './caller.ts';
