/** The settings in the declaration of a server tool. */
import { type Fields, isFields, restOf } from '../../formats/conversation/fields.ts';

/**
 * Settings are in `parameters`; those of a vendor's type that is short for a server tool are next to its type.
 * @param path of the declaration
 */
export function settingsOf(declaration: Fields, path: string): { settings: Fields; path: string } {
  const { parameters } = declaration;
  if (isFields(parameters)) return { settings: parameters, path: `${path}.parameters` };
  return { settings: restOf(declaration, ['type', 'parameters', 'cache_control']) ?? {}, path };
}
