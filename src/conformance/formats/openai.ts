/** What both formats of OpenAI have in common. */
import { type Fields, fields } from './loose.ts';

/** Whether a message instructs the model. */
export function instructs({ role }: Fields): boolean {
  return role === 'system' || role === 'developer';
}

/** The message of a refusal; undefined if the body is not a refusal in this format. */
export function errorOf(body: unknown): string | undefined {
  const { message } = fields(fields(body)['error']);
  return typeof message === 'string' ? message : undefined;
}
