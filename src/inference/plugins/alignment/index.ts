/**
 * The plugin `alignment`: a model judges whether each turn of the answer keeps to the rules of the request. A turn that
 * breaks a rule is withheld and written again, or only recorded.
 */
import Type from 'typebox';
import { optional, word } from '../../../formats/conversation/loose-schema.ts';
import { changeDocument } from '../../admission/changed-document.ts';
import type { Plugin } from '../plugin.ts';
import { Alignment } from './alignment.ts';
import { withInstructions } from './instructions.ts';

const MAX_RULES = 50;
const LONGEST_RULE = 2000;
const MAX_RETRIES = 5;

export const alignment: Plugin = {
  id: 'alignment',
  parameters: {
    rules: Type.Array(Type.String({ minLength: 1, maxLength: LONGEST_RULE }), { minItems: 1, maxItems: MAX_RULES }),
    mode: optional(word(['enforce', 'audit'])),
    instruct: optional(Type.Boolean()),
    max_retries: optional(Type.Integer({ minimum: 0, maximum: MAX_RETRIES })),
    threshold: optional(Type.Number({ minimum: 0, maximum: 1 })),
  },
  beforeFilters({ context, settings }) {
    const { format, document } = context.request;
    if (settings['instruct'] !== false) {
      changeDocument(context, withInstructions(format, document, settings['rules'] as readonly string[]));
    }
    return undefined;
  },
  judge: (step) => new Alignment(step),
};
