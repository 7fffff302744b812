/** Converts questions of an agent to tool calls, and reads the answers of callers. */
import type { GatewayError } from '../../base/errors.ts';
import type { AgentAnswer, AgentQuestion, PermissionOption, QuestionField } from '../agents/index.ts';
import { internError } from '../errors.ts';

/** The arguments of the tool call: a JSON string on the wire. */
export function questionArguments(question: AgentQuestion): string {
  if (question.kind === 'permission') {
    const { kind, operation, options } = question;
    return JSON.stringify({ kind, operation, options });
  }
  const { kind, message, fields } = question;
  return JSON.stringify({ kind, message, fields });
}

/** @throws GatewayError 400 if the text does not answer the question */
export function readAnswer(question: AgentQuestion, text: string): AgentAnswer {
  return question.kind === 'permission' ? permissionAnswer(question.options, text.trim()) : formAnswer(question, text);
}

function permissionAnswer(options: readonly PermissionOption[], text: string): AgentAnswer {
  if (text === 'cancel') return { action: 'cancel' };
  const option = options.find((offered) => offered === text);
  if (option !== undefined) return { action: 'option', option };
  throw unacceptable(`must be one of: ${[...options, 'cancel'].join(', ')}`);
}

function formAnswer({ fields }: Extract<AgentQuestion, { kind: 'elicitation' }>, text: string): AgentAnswer {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw unacceptable('must be a JSON object with the member action');
  }
  const { action, content } = (typeof answer === 'object' && answer !== null ? answer : {}) as Record<string, unknown>;
  if (action === 'decline' || action === 'cancel') return { action };
  if (action !== 'accept') throw unacceptable('must have the action accept, decline or cancel');
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw unacceptable('must have an object as its content, with a member for each field');
  }
  return { action, content: checkedForm(fields, content as Record<string, unknown>) };
}

function checkedForm(fields: readonly QuestionField[], content: Record<string, unknown>): Record<string, unknown> {
  for (const name of Object.keys(content)) {
    if (!fields.some((field) => field.name === name)) throw unacceptable(`has no field ${name.slice(0, 100)}`);
  }
  for (const field of fields) {
    const { name, required } = field;
    if (Object.hasOwn(content, name)) checkField(field, content[name]);
    else if (required) throw unacceptable(`lacks the required field ${name}`);
  }
  return content;
}

function checkField({ name, type, options }: QuestionField, value: unknown): void {
  const values = type === 'array' ? (Array.isArray(value) ? value : undefined) : [value];
  if (values === undefined || !values.every((each) => hasType(type, each))) {
    throw unacceptable(
      `must have ${type === 'array' ? 'a list of texts' : `a value of type ${type}`} in the field ${name}`,
    );
  }
  if (options === undefined || values.every((each) => options.includes(String(each)))) return;
  throw unacceptable(`must have one of these in the field ${name}: ${options.join(', ')}`);
}

function hasType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'number') return typeof value === 'number';
  if (type === 'boolean') return typeof value === 'boolean';
  return typeof value === 'string';
}

function unacceptable(problem: string): GatewayError {
  return internError('bad_request', `The content of the last message ${problem}.`);
}
