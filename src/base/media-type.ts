/** Media types by their first bytes. Labels may be wrong, and error pages arrive with status 200. */

const SIGNATURES: readonly (readonly [type: string, signature: string, at?: number])[] = [
  ['image/png', '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', '\xff\xd8\xff'],
  ['image/gif', 'GIF87a'],
  ['image/gif', 'GIF89a'],
  ['image/webp', 'WEBP', 8],
  ['image/avif', 'ftypavif', 4],
  ['image/avif', 'ftypavis', 4],
  ['image/heic', 'ftyphei', 4],
  ['image/heic', 'ftypmif1', 4],
  ['image/tiff', 'II*\0'],
  ['image/tiff', 'MM\0*'],
  ['application/pdf', '%PDF-'],
  ['audio/wav', 'WAVE', 8],
  ['audio/mpeg', 'ID3'],
  ['audio/flac', 'fLaC'],
  ['audio/ogg', 'OggS'],
  ['audio/aiff', 'AIFF', 8],
  ['audio/m4a', 'ftypM4A', 4],
  ['video/quicktime', 'ftypqt', 4],
  ['video/mp4', 'ftyp', 4],
  ['video/webm', '\x1aE\xdf\xa3'],
  ['video/mpeg', '\0\0\x01\xba'],
];

/** The media type of the first bytes; undefined if unknown (as for text). */
export function sniffMediaType(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 512)).toString('latin1');
  for (const [type, signature, at = 0] of SIGNATURES) {
    if (!head.startsWith(signature, at)) continue;
    if (at === 8 && !/^(?:RIFF|FORM)/.test(head)) continue;
    return type;
  }
  if (head.startsWith('BM') && head.slice(6, 10) === '\0\0\0\0') return 'image/bmp';
  if (/^\xff[\xf1\xf9]/.test(head)) return 'audio/aac';
  if (/^\xff[\xe2\xe3\xf2\xf3\xfa\xfb]/.test(head)) return 'audio/mpeg';
  return isSvg(head) ? 'image/svg+xml' : undefined;
}

/** An svg element, preceded only by what XML allows. */
function isSvg(head: string): boolean {
  return /^(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:(?!-->)[\s\S])*-->\s*|<!DOCTYPE\s+svg\b[^>]*>\s*)*<svg[\s>]/i.test(
    head,
  );
}
