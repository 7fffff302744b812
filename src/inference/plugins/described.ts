/** The member `plugins` of a request as the API description shows it: one schema for each plugin. */
import Type, { type TSchema } from 'typebox';
import { optional } from '../../formats/conversation/loose-schema.ts';
import type { Plugin } from './plugin.ts';
import { PLUGINS } from './registry.ts';

const Plugins = Type.Unsafe({
  type: ['array', 'null'],
  items: { anyOf: PLUGINS.map(schemaOf) },
});

/** @param schema of a request's body */
export function withPluginSettings(schema: TSchema): TSchema {
  const { properties } = schema as TSchema & { properties: Record<string, TSchema> };
  if (properties['plugins'] === undefined) return schema;
  return { ...schema, properties: { ...properties, plugins: Plugins } } as TSchema;
}

function schemaOf({ id, parameters, described = {} }: Plugin): TSchema {
  const name = id.replaceAll(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
  return Type.Object(
    { id: Type.Literal(id), enabled: optional(Type.Boolean()), ...parameters, ...described },
    { $id: `${name}Plugin`, additionalProperties: true },
  );
}
