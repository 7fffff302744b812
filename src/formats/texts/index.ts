/**
 * The texts of request bodies, for guardrail filters: which values of a body are prose that a model may read, and whose
 * it is. Works by words (`words.ts`), not by format, so that unknown members are texts too. Not here: the filters.
 */
import type { VisitTexts } from '../conversation/texts.ts';
import { Walk } from './walk.ts';
import { type OwnWords, wordsWith } from './words.ts';

/** A format's `texts`. @param own the words that this format has in addition to the common ones */
export function textsWith(own: OwnWords = {}): VisitTexts {
  const words = wordsWith(own);
  return (body, visitor) => {
    const walk = new Walk(words, visitor);
    for (const key of Object.keys(body)) walk.topLevel(body, key);
  };
}
