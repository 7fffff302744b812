/** The rate limits of a key or workspace. */
import type { ApiKey } from '../api.gen.ts';
import { Text } from './forms.tsx';

type Limits = NonNullable<ApiKey['rate_limits']>;

export const RATES: readonly (readonly [keyof Limits, string])[] = [
  ['requests_per_minute', 'Requests a minute'],
  ['requests_per_hour', 'Requests an hour'],
  ['requests_per_day', 'Requests a day'],
  ['tokens_per_minute', 'Tokens a minute'],
  ['tokens_per_hour', 'Tokens an hour'],
  ['tokens_per_day', 'Tokens a day'],
];

/** As the fields have them; absent or empty: no limit. */
export type RateTexts = Readonly<Partial<Record<keyof Limits, string>>>;

export function rateTexts(limits: Limits | null): RateTexts {
  return Object.fromEntries(RATES.map(([name]) => [name, String(limits?.[name] ?? '')]));
}

/** Null: those of the configuration. */
export function rateLimits(texts: RateTexts): Limits | null {
  const given = RATES.filter(([name]) => (texts[name] ?? '') !== '');
  if (given.length === 0) return null;
  return Object.fromEntries(given.map(([name]) => [name, Number(texts[name])]));
}

export function RateFields({ texts, onTexts }: { texts: RateTexts; onTexts(texts: RateTexts): void }) {
  return (
    <div class="form-row">
      {RATES.map(([name, label]) => (
        <Text
          key={name}
          label={label}
          member={`rate_limits.${name}`}
          type="number"
          min={1}
          value={texts[name] ?? ''}
          onInput={(text) => onTexts({ ...texts, [name]: text })}
        />
      ))}
    </div>
  );
}
