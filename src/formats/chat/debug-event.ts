/** The chunk with the output that a client requested with `debug`: no choices, sent before all others. */
import { stringifyJson } from '../../base/json.ts';
import type { Stamp } from '../conversation/format.ts';
import { ChunkHead } from './chunk-head.ts';

/** @param debug JSON without line breaks; not parsed, because it may be large and hold numbers beyond a double */
export function debugEvent(stamp: Stamp, debug: string): string {
  const head = stringifyJson({ ...new ChunkHead(stamp).members(), choices: [] });
  return `data: ${head.slice(0, -1)},"debug":${debug}}\n\n`;
}
