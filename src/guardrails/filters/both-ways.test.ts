/** Filters find the same in requests and in answers, and report it in the same order. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import { readDocument } from '../../base/json.ts';
import { chat } from '../../formats/index.ts';
import { samples } from '../../testing/laws/samples.ts';
import { type FilterAction, NO_RULES, type Rules } from '../settings.ts';
import { AnswerFilters } from './answer-filters.ts';
import { Filters, type FiltersOf, type Hit } from './filters.ts';

const appliesTo = ['request', 'response'] as const;
const action = fc.constantFrom<FilterAction>('block', 'redact', 'redact', 'flag');
const builtins = fc.uniqueArray(
  fc.record({
    slug: fc.constantFrom('email', 'ssn', 'credit-card', 'phone', 'ip-address', 'person-name', 'address'),
    action,
    appliesTo: fc.constant(appliesTo),
  }),
  { maxLength: 3, selector: ({ slug }) => slug },
);
const patterns = fc.array(
  fc.record({
    pattern: fc.constantFrom('ann', 'ann@example', '[a-z]{3}@', 'org', '1120', '[0-9]{3}-05', 'zeb', '(?i)ZEBRA', 'é'),
    action,
    label: fc.constantFrom(null, '[B]', '[A]', 'z'),
    appliesTo: fc.constant(appliesTo),
  }),
  { maxLength: 4 },
);
const guardrails = fc.array(fc.record({ builtins, patterns }), { minLength: 1, maxLength: 2 });
const text = fc
  .array(
    fc.constantFrom(
      'ann@example.org',
      '078-05-1120',
      'zebra',
      'é',
      '4111 1111 1111 1111',
      ' ',
      ', ',
      'Ann',
      'Jane Smith',
      '12 Main Street',
    ),
    {
      minLength: 1,
      maxLength: 7,
    },
  )
  .map((words) => words.join(' '));

interface Outcome {
  /** null if it was refused. */
  text: string | null;
  found: unknown[];
}

const shown = (hits: readonly Hit[]) => hits.map(({ filter, matches }) => [filter.name, filter.guardrailId, matches]);

function outcomeOf(run: () => { text: string; hits: readonly Hit[] }): Outcome {
  try {
    const { text, hits } = run();
    return { text, found: shown(hits) };
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    const { hits = [] } = error as { hits?: readonly Hit[] };
    return { text: null, found: shown(hits) };
  }
}

test('a text is blocked, redacted and counted equally as a request and as an answer', async () => {
  let finding = 0;
  await fc.assert(
    fc.asyncProperty(guardrails, text, async (all, content) => {
      const applied = all.map((one, index): FiltersOf => {
        const rules: Rules = { ...NO_RULES, ...one };
        return { guardrailId: String(index), via: 'api-key', rules };
      });
      const [requests, answers] = [await Filters.of(applied), await AnswerFilters.of(applied)];
      if (requests === undefined || answers === undefined) return;
      const asked = outcomeOf(() => {
        const { document, hits } = requests.screen(
          readDocument(Buffer.from(JSON.stringify({ prompt: content }))),
          chat.texts,
          systemClock,
        );
        return { text: document.member('prompt') as string, hits };
      });
      const answered = outcomeOf(() => {
        const screening = answers.screening(systemClock);
        return { text: screening.whole(content), hits: screening.hits };
      });
      assert.deepEqual(answered, asked);
      if (asked.found.length > 0) finding += 1;
    }),
    { numRuns: samples(300) },
  );
  // More than half of the samples find something.
  assert.ok(finding > samples(30), `${finding} samples found something`);
});
