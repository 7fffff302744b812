/** Texts in a container, for tools that change them. */
import { GatewayError } from '../../../base/errors.ts';
import type { ContainerUse } from '../../../containers/index.ts';
import { ToolError } from '../tool.ts';

const MOST_BYTES = 512 * 1024;

/** Undefined if there is nothing at the path. */
export async function textAt(path: string, sandbox: ContainerUse['sandbox']): Promise<string | undefined> {
  try {
    const bytes = await sandbox.readFile(path, MOST_BYTES);
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) throw new ToolError(`${path} is not a text in UTF-8`);
    if (error instanceof GatewayError && error.status === 404) return undefined;
    throw error;
  }
}
