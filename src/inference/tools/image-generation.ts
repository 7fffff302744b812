/** `svc:image_generation`: makes an image for the model, by a request to the images operation. */
import { GatewayError, invalidField } from '../../base/errors.ts';
import { readDocument, stringifyJson } from '../../base/json.ts';
import { type Fields, fieldsOf, listOf, restOf, textOf, textOrUndefined } from '../../formats/conversation/fields.ts';
import { image } from '../../formats/image/index.ts';
import { valueCheck } from '../../http/validate.ts';
import type { ToolsRunning } from '../turns/gateway-tools.ts';
import { requireKnown } from './asking/index.ts';
import { type RequestedTool, type ServerTool, ToolError, type ToolOutcome } from './tool.ts';

const LONGEST_PROMPT = 32_000;
/** Images may take minutes. */
const TIMES_A_CALL = 5;
/** Members of the operation that a request cannot set. */
const OWN = ['prompt', 'n', 'stream', 'user', 'session_id', 'provider', 'plugins'];

const checkSchema = valueCheck(image.schema);

export const imageGeneration: ServerTool = {
  name: 'svc:image_generation',
  check(settings, path) {
    for (const name of ['n', 'stream']) {
      if ((settings[name] ?? undefined) !== undefined) throw invalidField(`${path}.${name}`, 'is not supported here');
    }
    const body = { ...membersOf(settings), prompt: 'x' };
    checkSchema(body, path);
    checkRules(body, path);
  },
  begin(settings, path, { catalog }) {
    requireKnown(textOrUndefined(settings['model']), `${path}.model`, catalog());
    return new ImageGeneration(membersOf(settings));
  },
};

function membersOf(settings: Fields): Fields {
  return restOf(settings, OWN) ?? {};
}

/** Errors name the setting instead of the member. */
function checkRules(body: Fields, path: string): void {
  try {
    image.check(readDocument(Buffer.from(stringifyJson(body))));
  } catch (error) {
    if (!(error instanceof GatewayError) || error.details.path === undefined) throw error;
    throw new GatewayError('invalid_request', `${path}.${error.message}`, { path: `${path}.${error.details.path}` });
  }
}

class ImageGeneration implements RequestedTool {
  readonly functionName = 'generate_image';
  readonly description =
    'Makes an image from a description and shows it to the user. You do not see it, and need not repeat it.';
  readonly parameters = {
    type: 'object',
    properties: { prompt: { type: 'string', description: 'What the image shows', maxLength: LONGEST_PROMPT } },
    required: ['prompt'],
    additionalProperties: false,
  };
  readonly timesLimit = TIMES_A_CALL;
  readonly #settings: Fields;

  constructor(settings: Fields) {
    this.#settings = settings;
  }

  async run(input: Fields, running: ToolsRunning): Promise<ToolOutcome> {
    const prompt = textOf(input['prompt']).trim();
    if (prompt === '') throw new ToolError('the prompt is empty');
    const reply = await running.ask({ ...this.#settings, prompt }, running.signal, 'image');
    const { b64_json: data, media_type: mediaType } = fieldsOf(listOf(reply['data'])[0]);
    if (typeof data !== 'string' || data === '') throw new ToolError('no image was made');
    const type = textOrUndefined(mediaType) ?? 'image/png';
    return {
      result: `An image (${type}) was made, and the user sees it.`,
      item: { prompt, result: data },
      added: [{ type: 'image', source: { kind: 'bytes', mediaType: type, data } }],
    };
  }

  failure(error: string, input: Fields): Pick<ToolOutcome, 'item' | 'block'> {
    return { item: { prompt: textOf(input['prompt']), result: null, error } };
  }
}
