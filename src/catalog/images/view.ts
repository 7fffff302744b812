/** Wire views of image models. Pure. */
import type { Pricing } from '../../base/config.ts';
import { type Price, textFromPrice } from '../../base/money.ts';
import type { ImageAbilities } from '../../formats/image/index.ts';
import type { Endpoint, Model } from '../catalog.ts';
import { tagOf } from '../view.ts';
import type { CapabilityView, ImageEndpointsView, ImageModelListView } from './schema.ts';

/** Endpoints that `POST /images` can use. Unknown output modalities do not count as images. */
export function imageEndpoints({ endpoints }: Model): Endpoint[] {
  return endpoints.filter(
    ({ provider, outputModalities }) => provider.kind.image !== undefined && outputModalities?.includes('image'),
  );
}

export function viewImageModels(models: readonly Model[], path: string): ImageModelListView {
  return {
    data: models.flatMap((model) => {
      const endpoints = imageEndpoints(model);
      if (endpoints.length === 0) return [];
      const abilities = endpoints.map(abilitiesOf);
      return [
        {
          id: model.id,
          name: model.name,
          created: model.facts?.created ?? 0,
          description: '',
          architecture: {
            input_modalities: inputsOf(endpoints, abilities),
            output_modalities: [...new Set(endpoints.flatMap(({ outputModalities }) => outputModalities ?? []))],
          },
          supported_parameters: capabilitiesOf(together(abilities)),
          supports_streaming: abilities.some(({ streams }) => streams === true),
          endpoints: `${path}/${model.id}/endpoints`,
        },
      ];
    }),
  };
}

export function viewImageEndpoints(model: Model): ImageEndpointsView {
  return {
    id: model.id,
    endpoints: imageEndpoints(model).map((endpoint) => {
      const abilities = abilitiesOf(endpoint);
      const { provider, pricing } = endpoint;
      return {
        provider_name: provider.name,
        provider_slug: provider.id,
        provider_tag: tagOf(endpoint),
        supported_parameters: capabilitiesOf(abilities),
        supports_streaming: abilities.streams === true,
        allowed_passthrough_parameters: [...(abilities.passthrough ?? [])],
        pricing: pricing === null ? [] : pricesOf(pricing),
      };
    }),
  };
}

function abilitiesOf({ provider, upstreamId }: Endpoint): ImageAbilities {
  return provider.kind.image!.abilities(upstreamId);
}

/** Known inputs, plus images if references are supported. */
function inputsOf(endpoints: readonly Endpoint[], abilities: readonly ImageAbilities[]): string[] {
  const inputs = new Set(['text', ...endpoints.flatMap(({ inputModalities }) => inputModalities ?? [])]);
  if (abilities.some(({ references }) => (references ?? 0) > 0)) inputs.add('image');
  return [...inputs];
}

/** Abilities that at least one endpoint of the model has. */
function together(all: readonly ImageAbilities[]): ImageAbilities {
  const union = <T>(lists: readonly (readonly T[] | undefined)[]) => [...new Set(lists.flatMap((list) => list ?? []))];
  return {
    n: Math.max(...all.map(({ n }) => n)),
    ratios: union(all.map(({ ratios }) => ratios)),
    tiers: union(all.map(({ tiers }) => tiers)),
    qualities: union(all.map(({ qualities }) => qualities)),
    formats: union(all.map(({ formats }) => formats)),
    references: Math.max(...all.map(({ references }) => references ?? 0)),
    pixels: all.some(({ pixels }) => pixels === true),
    transparent: all.some(({ transparent }) => transparent === true),
    compression: all.some(({ compression }) => compression === true),
    seed: all.some(({ seed }) => seed === true),
    streams: all.some(({ streams }) => streams === true),
  };
}

function capabilitiesOf(abilities: ImageAbilities): Record<string, CapabilityView> {
  const { n, ratios, tiers, qualities, formats, references = 0 } = abilities;
  const words = (name: string, values: readonly string[] | undefined) =>
    values === undefined || values.length === 0 ? {} : { [name]: { type: 'enum' as const, values: [...values] } };
  const range = (name: string, min: number, max: number) => ({ [name]: { type: 'range' as const, min, max } });
  return {
    ...range('n', 1, n),
    ...words('aspect_ratio', ratios),
    ...words('resolution', tiers),
    ...(abilities.pixels && { size: { type: 'boolean' as const } }),
    ...words('quality', qualities),
    ...words('output_format', formats),
    ...words('background', abilities.transparent ? ['auto', 'transparent', 'opaque'] : undefined),
    ...(abilities.compression && range('output_compression', 0, 100)),
    ...(abilities.seed && { seed: { type: 'boolean' as const } }),
    ...(references > 0 && range('input_references', 0, references)),
    ...(abilities.streams && { stream: { type: 'boolean' as const } }),
  };
}

type Entry = ImageEndpointsView['endpoints'][number]['pricing'][number];

function pricesOf(pricing: Pricing): Entry[] {
  const entry = (billable: Entry['billable'], unit: Entry['unit'], price: Price | undefined): Entry[] =>
    price === undefined || price === 0n ? [] : [{ billable, unit, cost_usd: Number(textFromPrice(price)) }];
  return [
    ...entry('input_text', 'token', pricing.prompt),
    ...entry('input_image', 'token', pricing.imageToken),
    ...entry('input_reference', 'image', pricing.image),
    ...entry('output_image', 'token', pricing.imageOutput ?? pricing.completion),
    ...entry('output_image', 'request', pricing.request),
    ...(pricing.outputImages ?? []).map(({ per, price, variant }) => ({
      billable: 'output_image' as const,
      unit: per,
      cost_usd: Number(textFromPrice(price)),
      ...(variant.length > 0 && { variant: variant.join(' ') }),
    })),
  ];
}
