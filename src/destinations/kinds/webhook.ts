/** Any HTTP endpoint that accepts OTLP as JSON. */
import { choice, type DestinationKind, url } from './kind.ts';
import { otlpKind } from './otlp.ts';

export const webhook: DestinationKind = otlpKind({
  type: 'webhook',
  fields: { url: url(), method: choice(['POST', 'PUT'], 'POST') },
  durable: true,
  url: (members) => members['url']!,
  method: ({ members }) => (members['method'] === 'PUT' ? 'PUT' : 'POST'),
});
