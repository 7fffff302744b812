/**
 * Deferred tools (wire/chat.md, "deferred_tools"): tools that a model sees only once it has searched for them, with any
 * model, in every served form. Not a format: it stands between the conversation and the form that is spoken.
 */
export { Portable } from './portable.ts';
export {
  asksForDeferral,
  checkDeferral,
  type DeclaredTool,
  type DeferredSearch,
  DeferredToolsSchema,
  readDeferral,
} from './protocol.ts';
export { MOST_ROUNDS, Rounds } from './rounds.ts';
export type { CompileRegex } from './search.ts';
