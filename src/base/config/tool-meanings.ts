/** What the members of the yaml file mean that are about plugins and server tools. */
import { type Meaning, section } from './meaning.ts';
import { OPENAI_MODERATION_URL } from './moderation.ts';
import { MISTRAL_URL, OCR_MODEL } from './ocr.ts';

export const TOOL_MEANINGS: Readonly<Record<string, Meaning>> = {
  ...section('moderation', 'The service behind the plugin [moderation](../guides/plugins.md#moderation).', {
    url: ['Base URL of an API with `/moderations` as OpenAI has it.', OPENAI_MODERATION_URL],
    api_key: ['Key of the service.'],
    model: ['Model of the service. By default it chooses.'],
    on_failure: ['Whether requests that could not be checked are refused or allowed.', 'refuse'],
  }),
  ...section('ocr', 'The engine `mistral-ocr` of the plugin [file-parser](../guides/plugins.md#file-parser).', {
    url: ['Base URL of an API with `/ocr` as Mistral has it.', MISTRAL_URL],
    api_key: ['Key of the service.'],
    model: ['Model of the service.', OCR_MODEL],
    price_per_page: ['USD that a page costs the request.', 0],
  }),
  ...section('alignment', 'The plugin [alignment](../guides/plugins.md#alignment).', {
    model: ['Model of the catalog that judges answers. Defaults to the model of the request.'],
  }),
  ...section('vector_stores', '[Vector stores](../guides/vector-stores.md).', {
    embedding_model: [
      'Model of the catalog for the vectors of new vector stores. By default files are ranked by keywords only.',
    ],
  }),
  ...section('web_search', 'Searching the web for requests ([server tools](../guides/server-tools.md)).', {}),
  ...section('web_search.engines', 'Search engines. Requests that name none use the first.', {}),
  ...section('web_search.engines[]', 'One engine.', {
    kind: ['The service.'],
    url: ['Its base URL. Required for `searxng`; otherwise defaults to that of the service.'],
    api_key: ['Key for it. Required except for `searxng`.'],
    serves: ['Other engines whose requests this one answers.', '[]'],
    price_per_search: ['USD that a search costs the request.', 0],
  }),
};
