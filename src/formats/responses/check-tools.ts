/**
 * Validates the tools of a request and the choice among them, by the same rules as in chat (`chat/check-tools.ts`).
 */
import { invalidField } from '../../base/errors.ts';
import { toWireName } from '../../base/namespace.ts';
import { asksForDeferral } from '../adapters/deferred-tools/index.ts';
import { type Fields, fieldsOf, isFields, isPresent, listOf, textOf } from '../conversation/fields.ts';
import { checkToolName, noSuchTool, nothingToChoose } from '../conversation/request-rules.ts';

/** @param isPart other tools are added later */
export function checkTools(request: Fields, isPart: boolean): void {
  listOf(request['tools']).forEach((tool, index) => {
    const { type, name } = fieldsOf(tool);
    if (type === 'function' || type === 'custom') checkToolName(name, `tools[${index}].name`);
  });
  const choice = request['tool_choice'] ?? 'auto';
  if (choice !== 'none' && choice !== 'auto') checkToolChoice(choice, request, isPart || mayHaveOthers(request));
}

/**
 * Every value has one meaning: an unknown one is refused, not replaced by a default.
 * @param isOpen tools that are not in the request may be chosen
 */
function checkToolChoice(choice: unknown, request: Fields, isOpen: boolean): void {
  if (choice === 'required') {
    if (isOpen || toolsOf(request).length > 0) return;
    throw nothingToChoose();
  }
  if (typeof choice === 'string') {
    throw invalidField('tool_choice', "must be 'none', 'auto', 'required' or a tool choice object");
  }
  const { type, name, tools } = fieldsOf(choice);
  if (typeof type !== 'string' || type === '') throw invalidField('tool_choice.type', 'is missing');
  if ((type === 'function' || type === 'custom') && textOf(name) === '') {
    throw invalidField('tool_choice.name', 'is missing');
  }
  if (type === 'allowed_tools' && !Array.isArray(tools)) throw invalidField('tool_choice.tools', 'must be a list');
  if (isOpen) return;
  if (type !== 'allowed_tools') checkChosen(fieldsOf(choice), 'tool_choice', request);
  else listOf(tools).forEach((tool, index) => void checkChosen(fieldsOf(tool), `tool_choice.tools[${index}]`, request));
}

/** A tool by its name, or one without a name by its type. */
function checkChosen({ type, name }: Fields, path: string, request: Fields): void {
  const isNamed = type === 'function' || type === 'custom';
  const tools = toolsOf(request);
  const isThere = isNamed
    ? tools.some((tool) => tool['name'] === name)
    : tools.some((tool) => kindOf(tool['type']) === kindOf(type));
  if (!isThere) throw noSuchTool(`${path}.${isNamed ? 'name' : 'type'}`);
}

/** Those of the request and those that its items add, with the tools of namespaces. */
function toolsOf(request: Fields): Fields[] {
  return [request, ...listOf(request['input'])].flatMap((holder) => flat(listOf(fieldsOf(holder)['tools'])));
}

function flat(tools: readonly unknown[]): Fields[] {
  return tools.map(fieldsOf).flatMap((tool) => [tool, ...listOf(tool['tools']).map(fieldsOf)]);
}

/** The type without version, preview mark and maker: `web_search_preview_2025_03_11` becomes `web_search`. */
function kindOf(type: unknown): string {
  return toWireName(textOf(type)).replace(/^svc:|(?:_use)?(?:_preview)?(?:_\d{4}_\d\d_\d\d)?$/g, '');
}

/** Whether the gateway adds tools to those of the request, or the vendor those of a stored prompt. */
function mayHaveOthers(request: Fields): boolean {
  return isPresent(request['plugins']) || isFields(request['prompt']) || asksForDeferral(request);
}
