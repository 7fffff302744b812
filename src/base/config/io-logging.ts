/** The section `io_logging` of the yaml: which inputs and outputs are stored (docs/guides/io-logging.md). */
import type { Field } from './field.ts';
import { flag, integer, mapping } from './readers.ts';

export interface IoLoggingSettings {
  /** Applies to all requests whose workspace has no setting. */
  enabled: boolean;
  /** The share of those requests, above 0 and up to 1. */
  sampleRate: number;
  retentionDays: number;
  /** Maximum stored size of an input, and of an output. */
  maxBytes: number;
}

export const DEFAULT_IO_LOGGING: IoLoggingSettings = Object.freeze({
  enabled: false,
  sampleRate: 1,
  retentionDays: 30,
  maxBytes: 1024 * 1024,
});

export function ioLogging(field: Field): IoLoggingSettings | undefined {
  const read = mapping(field, {
    enabled: flag,
    sample_rate: share,
    retention_days: integer(1, 36_500),
    max_bytes: integer(1024, 16 * 1024 * 1024),
  });
  return (
    read && {
      enabled: read.enabled ?? DEFAULT_IO_LOGGING.enabled,
      sampleRate: read.sample_rate ?? DEFAULT_IO_LOGGING.sampleRate,
      retentionDays: read.retention_days ?? DEFAULT_IO_LOGGING.retentionDays,
      maxBytes: read.max_bytes ?? DEFAULT_IO_LOGGING.maxBytes,
    }
  );
}

function share(field: Field): number | undefined {
  const scalar = field.scalar();
  if (!scalar) return undefined;
  const value = scalar.expanded && /^[\d.]+$/.test(String(scalar.value)) ? Number(scalar.value) : scalar.value;
  const fits = typeof value === 'number' && value >= 0.0001 && value <= 1;
  return fits ? value : field.fail('must be a number from 0.0001 to 1');
}
