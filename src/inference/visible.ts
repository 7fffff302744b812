/** What of an answer a client can see, and how large it is: the border behind which no other endpoint may answer. */
import type { Part, PartDelta } from '../formats/conversation/conversation.ts';

/** UTF-16 units of the visible text in a part or a delta of one; base64 counts as it stands. */
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

/** A started part that shows something already: any call, picture, sound or vendor's block; text once it has some. */
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
