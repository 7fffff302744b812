/** The chunk that shows what a client asked for with `debug` (wire/chat.md, "Streaming"): no choices, before all others. */
import { stringifyJson } from '../../base/json.ts';
import type { Stamp } from '../conversation/format.ts';
import { ChunkHead } from './chunk-head.ts';

/** @param debug JSON without line breaks: a body may be too large, and its numbers too long, to be parsed for it */
export function debugEvent(stamp: Stamp, debug: string): string {
  const head = stringifyJson({ ...new ChunkHead(stamp).members(), choices: [] });
  return `data: ${head.slice(0, -1)},"debug":${debug}}\n\n`;
}
