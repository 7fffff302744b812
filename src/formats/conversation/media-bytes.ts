/** What media are, told from their bytes: a label may lie (bugs 31, 48, 50). */
import type { Source } from './conversation.ts';
import { Uncarried } from './losses.ts';

const DATA_URL = /^data:([^;,]*)((?:;[^;,]*)*),/i;

/** The image type that the first bytes name, if they name one; `data` is base64. */
export function sniffImage(data: string): string | undefined {
  if (data.startsWith('/9j/')) return 'image/jpeg';
  if (data.startsWith('iVBORw0KGgo')) return 'image/png';
  if (data.startsWith('R0lGOD')) return 'image/gif';
  const head = Buffer.from(data.slice(0, 24), 'base64').toString('latin1');
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp';
  if (head.startsWith('BM') && head.slice(6, 10) === '\0\0\0\0') return 'image/bmp';
  if (head.startsWith('II*\0') || head.startsWith('MM\0*')) return 'image/tiff';
  return undefined;
}

/** A `data:` URL taken apart; other sources as they are. */
export function withoutDataUrl(source: Source): Source {
  if (source.kind !== 'url') return source;
  const match = DATA_URL.exec(source.url.slice(0, 256));
  if (!match) return source;
  const rest = source.url.slice(match[0].length);
  const data = /;base64/i.test(match[2] ?? '') ? rest : Buffer.from(decodeText(rest), 'utf8').toString('base64');
  return { kind: 'bytes', mediaType: (match[1] || 'text/plain').toLowerCase(), data };
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Uncarried('data URL', 'its text is not percent-encoded');
  }
}
