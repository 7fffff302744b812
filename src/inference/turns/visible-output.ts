/** The visible part of an answer and its size. Once something is visible, no other endpoint may answer. */
import type { Part, PartDelta } from '../../formats/conversation/conversation.ts';

/** UTF-16 units of the visible text in a part or a delta; base64 counts with its encoded length. */
export function visibleSize(piece: Part | PartDelta): number {
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
    (some.text?.length ?? 0) +
    (some.arguments?.length ?? 0) +
    (some.name?.length ?? 0) +
    (some.encrypted?.length ?? 0) +
    (typeof some.signature === 'string' ? some.signature.length : 0) +
    (some.data?.length ?? 0) +
    (some.transcript?.length ?? 0)
  );
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
