/** `embedContent` and `batchEmbedContents` for clients of the Gemini API, as requests of the public format. */
import { invalidField } from '../../base/errors.ts';
import { stringifyJson } from '../../base/json.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import { costMembers } from '../conversation/format.ts';
import { checkPart, gemini, member, otherMembers, refuseTwins } from '../gemini/index.ts';
import type { embedding } from './index.ts';
import { MAX_INPUTS } from './request.ts';
import { vectorJson } from './vectors.ts';

/** Google's task types that the public format has other words for. */
const INPUT_TYPES: Readonly<Record<string, string>> = {
  RETRIEVAL_QUERY: 'search_query',
  RETRIEVAL_DOCUMENT: 'search_document',
  SEMANTIC_SIMILARITY: 'similarity',
};
const READ = new Set(['model', 'content', 'taskType', 'outputDimensionality']);
const BATCH = new Set(['requests']);
const MODEL = /^(?:models\/)?(.*)$/s;

/**
 * The request of the public format. @param batch `batchEmbedContents`, which has several `requests`
 * @throws GatewayError 400 with the path of a field that is invalid or cannot be expressed
 */
export function embeddingsRequestOf(body: Fields, model: string, batch: boolean): Fields {
  const requests = batch ? body['requests'] : [body];
  if (!Array.isArray(requests) || requests.length === 0) throw invalidField('requests', 'must be a non-empty list');
  if (requests.length > MAX_INPUTS) throw invalidField('requests', `must have at most ${MAX_INPUTS} items`);
  if (batch) refuseOthers(body, BATCH, '');
  const read = requests.map((value, index) => readRequest(value, batch ? `requests[${index}]` : '', model));
  const [{ settings } = { settings: {} }] = read;
  read.forEach((each, index) => {
    if (stringifyJson(each.settings) !== stringifyJson(settings)) {
      throw invalidField(`requests[${index}]`, 'must have the same taskType and outputDimensionality as the others');
    }
  });
  // Inputs of one request are all texts, or all lists of parts.
  const parts = read.map((each) => each.parts);
  const texts = parts.map((list) => (list.length === 1 ? list[0]!['text'] : undefined));
  const input = texts.includes(undefined) ? parts.map((content) => ({ content })) : texts;
  return { model, input, ...settings };
}

interface ReadRequest {
  /** Parts of the public format. */
  parts: Fields[];
  settings: Fields;
}

function readRequest(value: unknown, path: string, model: string): ReadRequest {
  const at = path === '' ? '' : `${path}.`;
  if (!isFields(value)) throw invalidField(path, 'must be an object');
  refuseOthers(value, READ, at);
  const [named, task, dimensions] = ['model', 'taskType', 'outputDimensionality'].map((name) => member(value, name));
  if (named !== undefined && MODEL.exec(textOf(named))?.[1] !== MODEL.exec(model)?.[1]) {
    throw invalidField(`${at}model`, 'must be the model of the path');
  }
  const given = fieldsOf(value['content'])['parts'];
  const list = isFields(given) ? [given] : listOf(given);
  if (list.length === 0) throw invalidField(`${at}content`, 'must have a part');
  if (task !== undefined && typeof task !== 'string') throw invalidField(`${at}taskType`, 'must be a string');
  if (dimensions !== undefined && !(Number.isSafeInteger(dimensions) && (dimensions as number) > 0)) {
    throw invalidField(`${at}outputDimensionality`, 'must be a positive integer');
  }
  const type = task === undefined || task === 'TASK_TYPE_UNSPECIFIED' ? undefined : (task as string);
  return {
    parts: list.map((part, index) => partOf(fieldsOf(part), `${at}content.parts[${index}]`)),
    settings: {
      ...(type !== undefined && { input_type: INPUT_TYPES[type] ?? type.toLowerCase() }),
      ...(dimensions !== undefined && { dimensions }),
    },
  };
}

/** A member without effect would change what a vector means. */
function refuseOthers(fields: Fields, known: ReadonlySet<string>, at: string): void {
  refuseTwins(fields, at);
  const [other] = Object.keys(otherMembers(fields, known) ?? {});
  if (other !== undefined) throw invalidField(`${at}${other}`, 'is not supported');
}

function partOf(part: Fields, at: string): Fields {
  checkPart(part, at);
  const [text, inline] = [part['text'], member(part, 'inlineData')];
  if (typeof text === 'string' && inline === undefined) return { type: 'text', text };
  const { data } = fieldsOf(inline);
  const mimeType = member(fieldsOf(inline), 'mimeType');
  if (typeof mimeType !== 'string' || typeof data !== 'string') {
    throw invalidField(at, 'must have text or inlineData');
  }
  const [kind, format] = mimeType.split('/') as [string, string?];
  const url = `data:${mimeType};base64,${data}`;
  if (kind === 'image') return { type: 'image_url', image_url: { url } };
  if (kind === 'audio') return { type: 'input_audio', input_audio: { data, format } };
  if (kind === 'video') return { type: 'input_video', input_video: { data: url } };
  return { type: 'input_file', input_file: { data: url } };
}

/** The embeddings format with replies and errors of the Gemini API; replies are not cached. */
export function embeddingForGemini(form: typeof embedding, batch: boolean): typeof embedding {
  const { renew: _, ...common } = form;
  return {
    ...common,
    encodeFailure: gemini.encodeFailure,
    encodeReply({ vectors }, _request, _stamp, { usage, cost, metadata }) {
      const written = vectors.map((vector) => `{"values":${vectorJson(vector, 'float').toString()}}`);
      const promptTokenCount = usage === undefined ? 0 : usage.input + usage.cacheRead;
      const more = stringifyJson({
        usageMetadata: { promptTokenCount, totalTokenCount: promptTokenCount, ...costMembers(cost) },
        ...(metadata && { [metadata.key]: metadata.value }),
      });
      const own = batch ? `"embeddings":[${written.join(',')}]` : `"embedding":${written[0]}`;
      return `{${own},${more.slice(1)}`;
    },
  };
}
