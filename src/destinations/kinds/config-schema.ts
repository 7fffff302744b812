/** The JSON Schema of a type's config, for openapi.json and the forms of the console. Checks are in `config.ts`. */
import type { DestinationKind, Field } from './kind.ts';

interface ConfigSchema {
  type: 'object';
  description: string;
  properties: Readonly<Record<string, object>>;
  required: readonly string[];
  additionalProperties: false;
}

const HEADERS = {
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Added to each request; the values are secrets',
};

export function configSchema({ fields, durable }: DestinationKind): ConfigSchema {
  const entries = Object.entries(fields);
  return {
    type: 'object',
    description: durable
      ? 'Records wait in the database until they are delivered, at most a day'
      : 'Records wait in memory until they are delivered',
    properties: { ...Object.fromEntries(entries.map(([name, field]) => [name, fieldSchema(field)])), headers: HEADERS },
    required: entries.filter(([, field]) => field.default === undefined && !field.optional).map(([name]) => name),
    additionalProperties: false,
  };
}

const FORMATS = { secret: 'password', url: 'uri' } as const;

function fieldSchema(field: Field): object {
  const { is, choices, pattern } = field;
  return {
    type: 'string',
    ...((is === 'secret' || is === 'url') && { format: FORMATS[is] }),
    ...(choices && { enum: choices }),
    ...(field.default !== undefined && { default: field.default }),
    ...(pattern && { description: pattern.says }),
  };
}
