import { recraftImages } from '../../formats/image/index.ts';
import { bearer } from '../auth/bearer.ts';
import type { ProviderKind } from '../provider.ts';

/** Recraft: raster and vector images (recraft.ai/docs/api-reference). */
export const recraft: ProviderKind = {
  id: 'recraft',
  name: 'Recraft',
  baseUrl: 'https://external.api.recraft.ai/v1',
  environment: 'RECRAFT_API_TOKEN',
  author: 'recraft',
  service: { role: 'vendor', registryId: null },
  guide: { verifiedBy: 'documentation', quirks: 'raster and vector, without references' },
  headers: bearer,
  origin: 'unknown',
  dialect: {},
  image: recraftImages,
};
