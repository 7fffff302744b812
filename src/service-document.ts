/** The OpenAPI document of the service, as the gateway serves it and as openapi.json has it. */
import manifest from '../package.json' with { type: 'json' };
import { describeOperations } from './http/openapi.ts';
import { type OperationParts, operations } from './operations.ts';

export function serviceDocument(): Record<string, unknown> {
  const { version, description } = manifest;
  // Operations are data; their handlers use the parts only during requests.
  const contract = operations(nothing as OperationParts);
  return describeOperations(contract, { title: 'Gatehouse', version, description });
}

/** The text of openapi.json. */
export function describeService(): string {
  return `${written(serviceDocument())}\n`;
}

const WIDTH = 120;

/** As JSON whose small objects and lists take one line each. */
function written(value: unknown, indent = ''): string {
  const short = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || short.length + indent.length <= WIDTH) return short;
  const deeper = `${indent}  `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const items = Array.isArray(value)
    ? value.map((item) => written(item, deeper))
    : Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([key, member]) => `${JSON.stringify(key)}: ${written(member, deeper)}`);
  return `${open}\n${deeper}${items.join(`,\n${deeper}`)}\n${indent}${close}`;
}

/** A stand-in for all parts: every member returns the stand-in itself. */
const nothing: unknown = new Proxy(() => {}, { get: () => nothing });
