/** `svc/free`: a random model that costs nothing. */
import type { Router } from './router.ts';
import { shuffled } from './switchyard.ts';

export const freeRouter: Router = {
  slug: 'svc/free',
  name: 'Free Models Router',
  strategy: 'free',
  choose: ({ offers, random }) => ({
    offers: shuffled(
      offers.filter(({ price }) => price === 0),
      random,
    ),
    reason: 'a random free model',
  }),
};
