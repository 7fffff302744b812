/** Wire schemas of `/datasets`. */
import { type Static, Type } from 'typebox';
import { closed } from '../../http/contract.ts';

const Day = Type.Optional(Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'In UTC, inclusive' }));
const refused = Type.Optional(Type.String({ description: 'Not recorded here; refused with 400' }));
const words = (...all: string[]) => Type.Union(all.map((each) => Type.Literal(each)));

export const DailyQuerySchema = Type.Object(
  {
    start_date: Day,
    end_date: Day,
    period: Type.Optional(words('day', 'week', 'month')),
    modality: refused,
    context_bucket: refused,
    category: refused,
    language_type: refused,
  },
  closed,
);
export type DailyQuery = Static<typeof DailyQuerySchema> & { period?: 'day' | 'week' | 'month' };

export const AppsQuerySchema = Type.Object(
  {
    start_date: Day,
    end_date: Day,
    sort: Type.Optional(words('popular', 'trending')),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 50 })),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 100, default: 0 })),
    category: refused,
    subcategory: refused,
  },
  closed,
);
export type AppsQuery = Static<typeof AppsQuerySchema>;

export const SessionsQuerySchema = Type.Object(
  {
    app_slug: Type.Optional(Type.String({ maxLength: 200 })),
    model: Type.Optional(Type.String({ maxLength: 200 })),
    turn_range: Type.Optional(words('1-turn', '2-9-turns', '10-49-turns', '50-plus-turns')),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 5_000, default: 0 })),
  },
  closed,
);
export type SessionsQuery = Static<typeof SessionsQuerySchema>;

const Meta = Type.Object(
  { as_of: Type.String(), start_date: Type.String(), end_date: Type.String(), version: Type.Literal('v1') },
  { $id: 'DatasetMeta' },
);
const tokens = Type.String({ description: 'Prompt and completion tokens, as decimal digits' });

export const DailyReply = Type.Object(
  {
    data: Type.Array(
      Type.Object(
        { date: Type.String(), model_permaslug: Type.String({ description: 'Or `other`' }), total_tokens: tokens },
        { $id: 'ModelRank' },
      ),
    ),
    meta: Meta,
  },
  { $id: 'ModelRanks' },
);

export const AppsReply = Type.Object(
  {
    data: Type.Array(
      Type.Object(
        {
          app_id: Type.Integer({ description: 'Derived from the name' }),
          app_name: Type.String(),
          rank: Type.Integer(),
          total_requests: Type.Integer(),
          total_tokens: tokens,
        },
        { $id: 'AppRank' },
      ),
    ),
    meta: Meta,
  },
  { $id: 'AppRanks' },
);

export const SessionsReply = Type.Object(
  {
    data: Type.Array(
      Type.Object(
        {
          app_name: Type.String(),
          app_slug: Type.String(),
          model_permaslug: Type.String(),
          turn_range: Type.String(),
          median_session_cost_usd: Type.Number(),
        },
        { $id: 'SessionCost' },
      ),
    ),
    meta: Type.Object({
      as_of: Type.String(),
      version: Type.Literal('v1'),
      window_days: Type.Integer(),
      window_end_date: Type.String(),
    }),
  },
  { $id: 'SessionCosts' },
);
