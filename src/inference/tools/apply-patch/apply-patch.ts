/** `svc:apply_patch`: changes one file by a diff, in the words of OpenAI's tool. */
import type { ContainerUse } from '../../../containers/index.ts';
import { APPLY_PATCH, patchOperation } from '../../../formats/conversation/patch-call.ts';
import { run } from '../../../sandboxes/index.ts';
import { Members } from '../../tool-settings.ts';
import { aboutEnvironment, environmentBeside, inContainer, shownFiles, textAt } from '../container/index.ts';
import { type ServerTool, ToolError } from '../tool.ts';
import { created, DiffError, patched } from './diff.ts';

const DELETE_MS = 60_000;

const DECLARED = {
  functionName: APPLY_PATCH.name,
  description: APPLY_PATCH.description,
  parameters: APPLY_PATCH.parameters,
};

export const applyPatch: ServerTool = {
  name: 'svc:apply_patch',
  check: (settings, path) => void new Members(settings, path).word('engine', ['auto', 'native', 'svc']),
  begin(settings, path, installation, beside) {
    if (settings['engine'] !== 'svc') return { ...DECLARED, ownCalls: 'apply_patch' };
    const environment = environmentBeside(beside);
    return inContainer(path, installation, undefined, (containers) => ({
      ...DECLARED,
      description: `${DECLARED.description} ${aboutEnvironment(environment)}`,
      async run(input, running) {
        const operation = patchOperation(input);
        const use = await containers.of(environment, running);
        use.isChanged = true;
        // Of several patches for one file none may read what another one is about to replace.
        const result = await use.inOrder(() => apply(operation, use));
        return { result, item: { operation, ...(await shownFiles(use)) } };
      },
      failure: (error, input) => ({ item: { operation: patchOperation(input), error } }),
    }));
  },
};

type Operation = ReturnType<typeof patchOperation>;

/** Returns the result for the model. @throws ToolError, GatewayError */
async function apply({ type, path, diff }: Operation, { sandbox }: ContainerUse): Promise<string> {
  if (type === 'delete_file') {
    await remove(path, sandbox);
    return `Deleted ${path}`;
  }
  if (diff === undefined) throw new ToolError(`${type} needs a diff`);
  const before = await textAt(path, sandbox);
  if (type === 'create_file') {
    if (before !== undefined) throw new ToolError(`${path} exists already; change it with update_file`);
    await sandbox.writeFile(
      path,
      changed(() => created(diff)),
    );
    return `Created ${path}`;
  }
  if (before === undefined) throw new ToolError(`there is no file ${path}`);
  await sandbox.writeFile(
    path,
    changed(() => patched(before, diff)),
  );
  return `Updated ${path}`;
}

function changed(change: () => string): string {
  try {
    return change();
  } catch (error) {
    throw error instanceof DiffError ? new ToolError(error.message) : error;
  }
}

const MISSING = 44;
const DELETE = `[ -f "$1" ] || [ -h "$1" ] || exit ${MISSING}; rm -f -- "$1"`;

async function remove(path: string, sandbox: ContainerUse['sandbox']): Promise<void> {
  const argv = ['sh', '-c', DELETE, 'sh', path] as const;
  const { ending } = await run(sandbox, { argv: [...argv], timeoutMs: DELETE_MS, outputBytes: 4096 });
  if (ending.code === 0) return;
  throw new ToolError(ending.code === MISSING ? `there is no file ${path}` : `${path} could not be deleted`);
}
