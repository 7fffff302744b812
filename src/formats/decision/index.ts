/**
 * Decisions (`POST /systemone`): typed questions about one state, on top of chat. A model with structured output answers all
 * questions in one JSON object. Pure.
 */
export { DecisionReply, schema as decisionSchema } from './schema.ts';
export { chatRequestOf, decisionOf, type Questions } from './through-chat.ts';
