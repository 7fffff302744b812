/** Files of the workspace that a request has copied into its container. */
import { invalidField } from '../../../base/errors.ts';
import type { CopyableFile } from '../../../containers/index.ts';
import type { ToolsRunning } from '../../turns/gateway-tools.ts';

/** Of the id, before the name of its copy. */
const ID_CHARACTERS = 8;
/** Of a name, in bytes: Linux takes 255. */
const LONGEST_NAME = 240;

type Asking = Pick<ToolsRunning, 'request' | 'parts' | 'signal'>;

/** Those that exist; whether all do was checked before the first turn. */
export async function copiesOf(ids: readonly string[], { request, parts, signal }: Asking): Promise<CopyableFile[]> {
  const found = await parts.files?.find(request.caller.workspaceId, ids);
  return ids.flatMap((id) => {
    const file = found?.get(id);
    if (file === undefined) return [];
    const path = `${file.id.slice(-ID_CHARACTERS)}-${shortened(file.filename)}`;
    return { id: file.id, path, read: () => parts.files!.read(file, signal) };
  });
}

/** @throws GatewayError 400 with the path of a file that does not exist */
export async function checkFiles(
  ids: readonly string[],
  { request: { caller }, parts }: Pick<Asking, 'request' | 'parts'>,
  path: string,
): Promise<void> {
  if (ids.length === 0) return;
  const found = await parts.files?.find(caller.workspaceId, ids);
  for (const [index, id] of ids.entries()) {
    if (!found?.has(id)) throw invalidField(`${path}[${index}]`, 'is not the id of a file in the workspace');
  }
}

/** Without characters in front, so that the extension stays. */
function shortened(name: string): string {
  let left = name;
  while (Buffer.byteLength(left) > LONGEST_NAME) left = [...left].slice(1).join('');
  return left;
}
