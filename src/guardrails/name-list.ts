/** A configured list of models or providers, matched against every endpoint. */
import type { Catalog, Endpoint } from '../catalog/index.ts';

export class NameList {
  readonly #names: ReadonlySet<string>;
  /** Ids of the named models in the catalog that was used last. */
  #resolved: { catalog: Catalog; ids: ReadonlySet<string> } | undefined;

  constructor(names: readonly string[]) {
    this.#names = new Set(names.map((name) => name.toLowerCase()));
  }

  /** True if a name is the model's id, canonical slug or alias. */
  hasModel(modelId: string, catalog: Catalog): boolean {
    return this.#idsIn(catalog).has(modelId.toLowerCase());
  }

  /** The same, also true if the model is a variant (`author/slug:free`) of a named one. */
  hasModelOrVariant(modelId: string, catalog: Catalog): boolean {
    const ids = this.#idsIn(catalog);
    const id = modelId.toLowerCase();
    const colon = id.lastIndexOf(':');
    return ids.has(id) || (colon > 0 && ids.has(id.slice(0, colon)));
  }

  /** True if a name is the provider's slug or name, or a slug with a variant (`acme/eu`). */
  hasProviderOf({ provider, region, quantization, tier }: Endpoint): boolean {
    const id = provider.id.toLowerCase();
    if (this.#names.has(id) || this.#names.has(provider.name.toLowerCase())) return true;
    return [region, quantization, tier?.name].some((variant) => {
      return variant !== null && variant !== undefined && this.#names.has(`${id}/${variant.toLowerCase()}`);
    });
  }

  #idsIn(catalog: Catalog): ReadonlySet<string> {
    if (this.#resolved?.catalog !== catalog) {
      const ids = new Set(this.#names);
      for (const name of this.#names) {
        const model = catalog.find(name);
        if (model !== undefined) ids.add(model.id.toLowerCase());
      }
      this.#resolved = { catalog, ids };
    }
    return this.#resolved.ids;
  }
}
