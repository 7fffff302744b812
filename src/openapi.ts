/** Prints the OpenAPI document of the service: `npm run openapi` writes it to openapi.json, a test compares the two. */
import { readFileSync } from 'node:fs';
import { describeOperations } from './http/openapi.ts';
import { type OperationParts, operations } from './operations.ts';

export function describeService(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const { version, description } = manifest as { version: string; description: string };
  // Operations are data; their handlers look at the parts only when a request comes.
  const contract = operations(nothing as OperationParts);
  const document = describeOperations(contract, { title: 'Gatehouse', version, description });
  return `${written(document)}\n`;
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

/** Stands for every part: each member of it is it. */
const nothing: unknown = new Proxy(() => {}, { get: () => nothing });

if (import.meta.main) process.stdout.write(describeService());
