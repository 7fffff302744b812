/**
 * Deferred tools (docs/guides/deferred-tools.md): the model sees these tools only after searching for them, with any
 * model and in every served format. Not a format: it works between the conversation and the spoken format.
 */
export { argumentsProblem } from './arguments.ts';
export { DeferredConversation } from './deferred-conversation.ts';
export {
  asksForDeferral,
  checkDeferral,
  type DeclaredTool,
  DeferredToolsSchema,
  isToolSearch,
  readDeferral,
} from './protocol.ts';
