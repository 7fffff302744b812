/** The law of filters: the database finds exactly the users that satisfy the condition one by one. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import type { Json } from '../workspaces/control.ts';
import { ENTERPRISE, startDirectory } from './directory.ts';

const { scim, user } = await startDirectory({ after: (close) => after(close as () => Promise<void>) });

const WORDS = ['a', 'A', 'ab', 'b', 'Ba', 'ü', '%', '_', '\\', '"', "'", ' ', 'Ab"c'];
const word = fc.constantFrom(...WORDS);
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

interface Person {
  title: string | undefined;
  active: boolean;
  name: { familyName: string } | undefined;
  emails: { value: string; type: string | undefined }[] | undefined;
  department: string | undefined;
}

const person: fc.Arbitrary<Person> = fc.record({
  title: some(word),
  active: fc.boolean(),
  name: some(fc.record({ familyName: word })),
  emails: some(fc.array(fc.record({ value: word, type: some(word) }), { minLength: 1, maxLength: 3 })),
  department: some(word),
});

/** A filter as text, and a reader of users that shares no code with the gateway's. */
interface Asked {
  text: string;
  of(person: Person): boolean;
}

const OPERATORS: Record<string, (a: string, b: string) => boolean> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
  co: (a, b) => a.includes(b),
  sw: (a, b) => a.startsWith(b),
  ew: (a, b) => a.endsWith(b),
  gt: (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)) > 0,
  ge: (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)) >= 0,
  lt: (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0,
  le: (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)) <= 0,
};

const PATHS: Record<string, (person: Person) => (string | undefined)[]> = {
  title: ({ title }) => [title],
  'NAME.familyname': ({ name }) => [name?.familyName],
  'emails.value': ({ emails }) => emails?.map(({ value }) => value) ?? [],
  emails: ({ emails }) => emails?.map(({ value }) => value) ?? [],
  'emails.type': ({ emails }) => emails?.map(({ type }) => type) ?? [],
  [`${ENTERPRISE}:department`]: ({ department }) => [department],
};

function compared(values: (string | undefined)[], operator: string, wanted: string): boolean {
  const known = values.filter((value) => value !== undefined);
  if (known.length === 0) return operator === 'ne';
  return known.some((value) => OPERATORS[operator]!(value.toLowerCase(), wanted.toLowerCase()));
}

const operator = fc.constantFrom(...Object.keys(OPERATORS));
const comparison = fc.tuple(fc.constantFrom(...Object.keys(PATHS)), operator, word).map(
  ([path, op, wanted]): Asked => ({
    text: `${path} ${op} ${JSON.stringify(wanted)}`,
    of: (each) => compared(PATHS[path]!(each), op, wanted),
  }),
);
const present = fc
  .constantFrom(...Object.keys(PATHS))
  .map(
    (path): Asked => ({ text: `${path} pr`, of: (each) => PATHS[path]!(each).some((value) => value !== undefined) }),
  );
const active = fc
  .boolean()
  .map((value): Asked => ({ text: `active eq ${value}`, of: (each) => each.active === value }));
const item = fc.tuple(operator, word, operator, word).map(
  ([first, a, second, b]): Asked => ({
    text: `emails[value ${first} ${JSON.stringify(a)} and type ${second} ${JSON.stringify(b)}]`,
    of: ({ emails = [] }) =>
      emails.some(({ value, type }) => compared([value], first, a) && compared([type], second, b)),
  }),
);
const { filter } = fc.letrec<{ filter: Asked }>((tie) => ({
  filter: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    comparison,
    present,
    active,
    item,
    tie('filter').map((part): Asked => ({ text: `not (${part.text})`, of: (each) => !part.of(each) })),
    fc.tuple(tie('filter'), fc.constantFrom('and', 'or', 'AND'), tie('filter')).map(
      ([a, op, b]): Asked => ({
        text: `(${a.text}) ${op} (${b.text})`,
        of: (each) => (op === 'or' ? a.of(each) || b.of(each) : a.of(each) && b.of(each)),
      }),
    ),
  ),
}));

test('a filter finds exactly the matching users, whatever its structure', async () => {
  const [people = []] = fc.sample(fc.array(person, { minLength: 25, maxLength: 25 }), { numRuns: 1, seed: 7 });
  const names = new Map<string, Person>();
  for (const [n, { department, ...attributes }] of people.entries()) {
    names.set(`p${n}`, people[n]!);
    await user(`p${n}`, { ...attributes, ...(department && { [ENTERPRISE]: { department } }) });
  }
  await fc.assert(
    fc.asyncProperty(filter, async ({ text, of }) => {
      const { status, body } = await scim('POST', '/Users/.search', { filter: text, attributes: ['userName'] });
      assert.equal(status, 200, `${text}: ${JSON.stringify(body)}`);
      const found = body.Resources.map(({ userName }: Json) => userName).toSorted();
      const expected = [...names].flatMap(([name, each]) => (of(each) ? [name] : [])).toSorted();
      assert.deepEqual(found, expected, text);
    }),
    { seed: 11, numRuns: process.env['GATEHOUSE_TEST_EXHAUSTIVE'] ? 5_000 : 200 },
  );
});
