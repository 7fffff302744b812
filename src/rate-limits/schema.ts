/** Wire schema of `rate_limits` on keys and workspaces; a Gatehouse extension. */
import { Type } from 'typebox';
import { closed, nullable } from '../http/contract.ts';
import { MEASURES, type Measure } from './limits.ts';

/** Far beyond any upstream's limits, and within exact integers. */
const MAX_RATE = 1_000_000_000_000;

const amount = nullable(Type.Integer({ minimum: 1, maximum: MAX_RATE }));
const members = Object.fromEntries(MEASURES.map((measure) => [measure, Type.Optional(amount)])) as Record<
  Measure,
  Type.TOptional<typeof amount>
>;

export const RateLimitsSchema = nullable(
  Type.Object(members, {
    ...closed,
    description: 'Maximum requests and tokens per UTC minute, hour and day. An absent member sets no limit here',
  }),
);
