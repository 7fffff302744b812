/** The size of media within a request, for estimates: their tokens do not follow from their bytes. */
import { sniffImage } from './media-bytes.ts';

/** An image of usual size is 1,600 tokens, or so many bytes of text at four bytes a token. */
const IMAGE_BYTES = 6_400;
/** Documents, audio and video have about one token for so many characters of base64, judged by usual files. */
const CHARACTERS_PER_BYTE = 16;

const DATA_URL = /^data:[^,\s]{0,200},/i;
const BASE64 = /^[A-Za-z0-9+/_=-]{256}/;

/**
 * How many bytes of a request body to leave out, so that the rest has about four bytes a token: inline media have far more
 * bytes than their tokens account for.
 */
export function excessMediaBytes(value: unknown): number {
  if (typeof value === 'string') return excessOf(value);
  if (typeof value !== 'object' || value === null) return 0;
  let sum = 0;
  for (const each of Array.isArray(value) ? value : Object.values(value)) sum += excessMediaBytes(each);
  return sum;
}

function excessOf(text: string): number {
  if (text.length <= IMAGE_BYTES) return 0;
  const [head = ''] = DATA_URL.exec(text) ?? [];
  if (head === '' && !BASE64.test(text)) return 0;
  const isImage = head === '' ? sniffImage(text) !== undefined : /^data:image\//i.test(head);
  const counted = isImage ? IMAGE_BYTES : Math.max(IMAGE_BYTES, Math.ceil(text.length / CHARACTERS_PER_BYTE));
  return text.length - counted;
}
