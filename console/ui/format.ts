/** Numbers, money and times as the viewer reads them: their locale, their time zone. */

const number = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
const COMPACT_FROM = 100_000;

export const NONE = '–';

export function count(value: number | null | undefined): string {
  if (value == null) return NONE;
  return value >= COMPACT_FROM ? compact.format(value) : number.format(value);
}

const moneyFormats = new Map<number, Intl.NumberFormat>();

/** Small amounts keep their first two digits that are not zero. */
export function usd(value: number | null | undefined): string {
  if (value == null) return NONE;
  const size = Math.abs(value);
  const digits = size === 0 || size >= 1 ? 2 : Math.min(8, Math.max(2, 1 - Math.floor(Math.log10(size))));
  let format = moneyFormats.get(digits);
  if (format === undefined) {
    format = new Intl.NumberFormat(undefined, {
      style: 'currency',
      currency: 'USD',
      currencyDisplay: 'narrowSymbol',
      minimumFractionDigits: 2,
      maximumFractionDigits: digits,
    });
    moneyFormats.set(digits, format);
  }
  return format.format(value);
}

const PER_MILLION = 1_000_000;

/** Of a price per token in USD, as the catalog has it. */
export function perMillion(price: string | number | null | undefined): string {
  if (price == null) return NONE;
  const value = Number(price) * PER_MILLION;
  if (!Number.isFinite(value) || value < 0) return NONE;
  return value === 0 ? 'free' : usd(value);
}

export function percent(share: number | null | undefined): string {
  return share == null ? NONE : `${(share * 100).toFixed(share !== 0 && share < 0.1 ? 1 : 0)}%`;
}

export function duration(ms: number | null | undefined): string {
  if (ms == null) return NONE;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}

export function bytes(value: number | null | undefined): string {
  if (value == null) return NONE;
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(value) / Math.log(1_024)));
  return `${(value / 1_024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const dateTimeOfYear = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  second: '2-digit',
});
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

export function timeText(iso: string | number | null | undefined): string {
  if (iso == null) return NONE;
  const time = new Date(iso);
  return (time.getFullYear() === new Date().getFullYear() ? dateTimeOfYear : dateTime).format(time);
}

export function dayText(iso: string | number | null | undefined): string {
  return iso == null ? NONE : day.format(new Date(iso));
}

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

export function ago(iso: string | number | null | undefined, now = Date.now()): string {
  if (iso == null) return NONE;
  const seconds = (new Date(iso).getTime() - now) / 1_000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit);
  }
  return Math.abs(seconds) < 5 ? 'just now' : relative.format(Math.round(seconds), 'second');
}
