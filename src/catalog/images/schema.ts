/** Wire schemas of image models and their endpoints. */
import { type Static, Type } from 'typebox';

const Capability = Type.Union(
  [
    Type.Object({ type: Type.Literal('enum'), values: Type.Array(Type.String()) }),
    Type.Object({ type: Type.Literal('range'), min: Type.Number(), max: Type.Number() }),
    Type.Object({ type: Type.Literal('boolean') }),
  ],
  { $id: 'ImageCapability' },
);

const Capabilities = Type.Record(Type.String(), Capability, { description: 'Supported values by parameter' });

export const ImageModelListSchema = Type.Object(
  {
    data: Type.Array(
      Type.Object({
        id: Type.String(),
        name: Type.String(),
        created: Type.Integer({ description: 'Unix seconds; 0 if unknown' }),
        description: Type.String(),
        architecture: Type.Object({
          input_modalities: Type.Array(Type.String()),
          output_modalities: Type.Array(Type.String()),
        }),
        supported_parameters: Capabilities,
        supports_streaming: Type.Boolean(),
        endpoints: Type.String({ description: 'Path of its endpoint list' }),
      }),
    ),
  },
  { $id: 'ImageModelList' },
);

export const ImageEndpointsSchema = Type.Object(
  {
    id: Type.String(),
    endpoints: Type.Array(
      Type.Object({
        provider_name: Type.String(),
        provider_slug: Type.String(),
        provider_tag: Type.Union([Type.String(), Type.Null()]),
        supported_parameters: Capabilities,
        supports_streaming: Type.Boolean(),
        allowed_passthrough_parameters: Type.Array(Type.String(), { description: 'Members of provider.options' }),
        pricing: Type.Array(
          Type.Object({
            billable: Type.Enum(['output_image', 'input_image', 'input_font', 'input_reference', 'input_text']),
            unit: Type.Enum(['request', 'image', 'megapixel', 'token']),
            cost_usd: Type.Number(),
            variant: Type.Optional(Type.String({ description: 'Quality and size that the price applies to' })),
          }),
          { description: 'Empty if unknown' },
        ),
      }),
    ),
  },
  { $id: 'ImageEndpoints' },
);

export type CapabilityView = Static<typeof Capability>;
export type ImageModelListView = Static<typeof ImageModelListSchema>;
export type ImageEndpointsView = Static<typeof ImageEndpointsSchema>;
