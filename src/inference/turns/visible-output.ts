/** The visible part of an answer and its size. Once something is visible, no other endpoint may answer. */
import { type TextEncoding, unitsOf } from '../../base/byte-text.ts';
import type { Part, PartDelta, Turn } from '../../formats/conversation/conversation.ts';

/** UTF-16 units of the visible text in a part or a delta; base64 counts with its encoded length. */
export function visibleSize(piece: Part | PartDelta, encoding: TextEncoding = 'utf8'): number {
  const some = piece as {
    text?: string;
    arguments?: string;
    name?: string;
    encrypted?: string;
    signature?: unknown;
    data?: string;
    transcript?: string;
  };
  return (
    sizeOf(some.text, encoding) +
    sizeOf(some.arguments, encoding) +
    sizeOf(some.name, encoding) +
    (some.encrypted?.length ?? 0) +
    (typeof some.signature === 'string' ? some.signature.length : 0) +
    (some.data?.length ?? 0) +
    sizeOf(some.transcript, encoding)
  );
}

export function visibleSizeOf({ choices }: Turn, encoding: TextEncoding): number {
  let size = 0;
  for (const { parts } of choices) for (const part of parts) size += visibleSize(part, encoding);
  return size;
}

function sizeOf(text: string | undefined, encoding: TextEncoding): number {
  if (text === undefined) return 0;
  return encoding === 'utf8' ? text.length : unitsOf(text);
}

/** Whether a new part is visible: any call, image, audio or vendor block; text only once it is not empty. */
export function isVisible(part: Part): boolean {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text !== '';
    case 'reasoning':
      return part.text !== '' || part.encrypted !== undefined || (part.signature ?? '') !== '';
    default:
      return true;
  }
}
