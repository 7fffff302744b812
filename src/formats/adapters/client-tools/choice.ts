/** The tool choice and the optional web search, for an upstream that only knows functions. */
import type { Conversation, ToolChoice } from '../../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../../conversation/fields.ts';
import type { EncodeTarget, SpokenFormat } from '../../conversation/format.ts';
import { type Losses, Uncarried } from '../../conversation/losses.ts';
import type { Directory } from './directory.ts';

/** Types of choices that name a tool by its type. */
const OWN_CHOICES = ['local_shell', 'tool_search', 'apply_patch'];

/** @throws Uncarried if only the web search could satisfy the choice */
export function chosen(choice: ToolChoice | undefined, directory: Directory): ToolChoice | undefined {
  if (choice?.mode === 'required' && directory.tools.length === 0 && directory.webSearch !== undefined) {
    throw new Uncarried(
      'tool_choice',
      `no tool but ${textOf(directory.webSearch['type'])}, which cannot be forced here`,
    );
  }
  if (choice?.mode === 'tool') {
    return { mode: 'tool', name: directory.chosenName(choice.name, choice.namespace) };
  }
  if (choice?.mode !== 'opaque') return choice;
  const value = fieldsOf(choice.value);
  const type = textOf(value['type']);
  if (choice.origin === 'chat') {
    if (type === 'allowed_tools') return allowed(choice, value, directory);
    if (type !== 'custom' || directory.takes('custom')) return renamed(choice, value, directory);
    return { mode: 'tool', name: directory.chosenName(textOf(fieldsOf(value['custom'])['name']), undefined) };
  }
  if (choice.origin !== 'responses' || directory.takes(type)) return choice;
  if (OWN_CHOICES.includes(type)) return { mode: 'tool', name: directory.chosenName(type, undefined) };
  throw new Uncarried(`tool_choice of type ${type}`, 'the upstream does not support it');
}

function renamed(choice: ToolChoice, value: Fields, directory: Directory): ToolChoice {
  const custom = fieldsOf(value['custom']);
  if (value['type'] !== 'custom') return choice;
  const name = directory.chosenName(textOf(custom['name']), undefined);
  return { mode: 'opaque', origin: 'chat', value: { ...value, custom: { ...custom, name } } };
}

/** The allowed tools by their upstream names. */
function allowed(choice: ToolChoice, value: Fields, directory: Directory): ToolChoice {
  const { mode, tools } = fieldsOf(value['allowed_tools']);
  const named = listOf(tools).map((entry) => {
    const tool = fieldsOf(entry);
    const type = textOf(tool['type']);
    const { name, namespace, ...others } = fieldsOf(tool[type]);
    const upstream = directory.chosenName(textOf(name), typeof namespace === 'string' ? namespace : undefined);
    const kind = type === 'custom' && directory.takes('custom') ? 'custom' : 'function';
    return { type: kind, [kind]: { ...others, name: upstream } };
  });
  if (choice.mode !== 'opaque') return choice;
  return { ...choice, value: { ...value, allowed_tools: { mode, tools: named } } };
}

/** The provider's web search if it has one; otherwise the search is dropped and reported. */
export function searching(
  directory: Directory,
  spoken: SpokenFormat,
  target: EncodeTarget,
  losses: Losses,
): Pick<Conversation, 'webSearch'> {
  if (directory.webSearch === undefined) return {};
  const { type, user_location: location, search_context_size: size } = directory.webSearch;
  if (spoken.searchesWeb?.(target, directory.tools.length > 0) !== true) {
    losses.drop(textOf(type), 'the provider has no web search together with client tools');
    return {};
  }
  const { type: kind, ...approximate } = fieldsOf(location);
  return {
    webSearch: {
      ...(typeof size === 'string' && { search_context_size: size }),
      ...(isFields(location) && { user_location: { type: kind, approximate } }),
    },
  };
}
