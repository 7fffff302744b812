/** How rate limits stand in keys and workspaces on the wire; fields of our own. */
import { Type } from 'typebox';
import { closed, nullable } from '../http/contract.ts';
import { MEASURES, type Measure } from './limits.ts';

/** Far beyond what any upstream allows, and whole numbers stay exact. */
const MAX_RATE = 1_000_000_000_000;

const amount = nullable(Type.Integer({ minimum: 1, maximum: MAX_RATE }));
const members = Object.fromEntries(MEASURES.map((measure) => [measure, Type.Optional(amount)])) as Record<
  Measure,
  Type.TOptional<typeof amount>
>;

export const RateLimitsSchema = nullable(
  Type.Object(members, {
    ...closed,
    description: 'Most requests and tokens of a UTC minute, hour and day. What is absent is not limited here',
  }),
);
