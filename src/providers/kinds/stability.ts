import { stabilityImages } from '../../formats/image/index.ts';
import { bearer } from '../auth/bearer.ts';
import type { ProviderKind } from '../provider.ts';

/**
 * Stability AI: Stable Image and Stable Diffusion (platform.stability.ai/docs/api-reference). Without this `accept`
 * header it returns raw bytes.
 */
export const stability: ProviderKind = {
  id: 'stability',
  name: 'Stability AI',
  baseUrl: 'https://api.stability.ai',
  environment: 'STABILITY_API_KEY',
  author: 'stabilityai',
  service: { role: 'vendor', registryId: null },
  guide: { verifiedBy: 'documentation', quirks: 'JSON by the header `accept`' },
  headers: (credential) => ({ ...bearer(credential), accept: 'application/json' }),
  origin: 'unknown',
  dialect: {},
  image: stabilityImages,
};
