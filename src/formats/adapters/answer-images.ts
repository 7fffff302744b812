/**
 * Images of earlier answers, for upstreams whose assistant messages cannot hold them: they begin the user message that
 * follows. Calls and their results stay adjacent. An image in a last message, which the answer continues, stays there.
 */
import type { ImagePart, Message, Part } from '../conversation/conversation.ts';
import type { TurnAdapter } from './adapter.ts';

export const answerImages: TurnAdapter = (conversation, { spoken }) => {
  const { messages } = conversation;
  const isMoved = (part: Part): part is ImagePart => part.type === 'image' && spoken.holdsAnswerImage?.(part) !== true;
  const holders = messages.filter(({ role, parts }) => role === 'assistant' && parts.some(isMoved));
  if (holders.length === 0) return { conversation };
  const last = messages.findLastIndex(({ role }) => role !== 'assistant');
  const moved: Message[] = [];
  let waiting: Part[] = [];
  messages.forEach((message, index) => {
    const { role, parts } = message;
    if (role === 'assistant' && index < last) {
      const others = parts.filter((part) => !isMoved(part));
      waiting.push(...parts.filter(isMoved));
      if (others.length > 0) moved.push(others.length === parts.length ? message : { ...message, parts: others });
    } else if (role === 'user' && waiting.length > 0) {
      moved.push({ ...message, parts: [...waiting, ...parts] });
      waiting = [];
    } else moved.push(message);
    if (index === last && waiting.length > 0) {
      moved.push({ role: 'user', parts: waiting });
      waiting = [];
    }
  });
  return { conversation: { ...conversation, messages: moved } };
};
