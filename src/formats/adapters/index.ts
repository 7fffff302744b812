/**
 * Adapters: what an upstream lacks is replaced in the conversation that it gets, and its answer is changed back. Each is
 * one file or folder with one interface (`adapter.ts`), and works with every pair of formats. Not here: wire formats, and
 * the loop of several upstream turns (`inference/turns/`), for which `deferred-tools/` provides tools.
 */
import type { TurnAdapter } from './adapter.ts';
import { allowedTools } from './allowed-tools.ts';
import { answerImages } from './answer-images.ts';
import { distinctAnswerCalls, distinctHistoryCalls } from './call-ids.ts';
import { clientTools } from './client-tools/index.ts';
import { nativeTools } from './native-tools.ts';
import { outputTool } from './output-tool.ts';
import { serviceTier } from './service-tier.ts';
import { shortNames } from './short-names.ts';

export { type AdapterContext, adapt, type Restoring, type TurnAdapter, together } from './adapter.ts';
export { choosesAmong } from './allowed-tools.ts';
export { CallIds, distinctDecoder, distinctTurn } from './call-ids.ts';
export { needsFunctions, withPatchCalls } from './client-tools/index.ts';
export { hideReasoning } from './hide-reasoning.ts';
export { type KeptThinking, keepThinking, type ThinkingMemory, withKeptThinking } from './kept-thinking.ts';
export { hasLongNames } from './short-names.ts';

/** In the order in which a request passes them. */
export const TURN_ADAPTERS: readonly TurnAdapter[] = [
  nativeTools,
  distinctAnswerCalls,
  outputTool,
  clientTools,
  allowedTools,
  answerImages,
  distinctHistoryCalls,
  shortNames,
  serviceTier,
];
