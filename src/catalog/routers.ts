/** Router models in the lists: names that stand for a choice among all models (`inference/plugins/routers`). */
import type { Model } from './catalog.ts';

export interface ListedRouter {
  /** As shown: with the prefix of the output namespace. */
  id: string;
  name: string;
}

/** A row for the router, with the abilities of all models that it can choose. Undefined without a choice. */
export function routerModel({ id, name }: ListedRouter, models: readonly Model[]): Model | undefined {
  const writing = models
    .map(({ endpoints }) => endpoints.filter(({ outputModalities }) => outputModalities?.includes('text') ?? true))
    .filter((endpoints) => endpoints.length > 0);
  return writing.length < 2 ? undefined : { id, name, endpoints: writing.flat(), router: true };
}
