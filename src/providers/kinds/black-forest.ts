import { blackForestImages } from '../../formats/image/index.ts';
import type { ProviderKind } from '../provider.ts';

/** Black Forest Labs: FLUX (docs.bfl.ai). Images only. */
export const blackForest: ProviderKind = {
  id: 'black-forest-labs',
  name: 'Black Forest Labs',
  baseUrl: 'https://api.bfl.ai/v1',
  environment: 'BFL_API_KEY',
  author: 'black-forest-labs',
  service: { role: 'vendor', registryId: null },
  guide: { verifiedBy: 'documentation', quirks: 'results are fetched from a queue' },
  headers: (credential): Record<string, string> => (credential === null ? {} : { 'x-key': credential }),
  origin: 'unknown',
  dialect: {},
  image: blackForestImages,
};
