import { falImages } from '../../formats/image/index.ts';
import type { ProviderKind } from '../provider.ts';

/** fal: image models of many vendors behind one queue (docs.fal.ai). Images only. */
export const fal: ProviderKind = {
  id: 'fal',
  name: 'fal',
  baseUrl: 'https://queue.fal.run',
  environment: 'FAL_KEY',
  author: 'fal-ai',
  service: { role: 'host', registryId: null },
  guide: { verifiedBy: 'documentation', quirks: 'results are fetched from a queue' },
  headers: (credential): Record<string, string> => (credential === null ? {} : { authorization: `Key ${credential}` }),
  origin: 'unknown',
  dialect: {},
  image: falImages,
};
