/** The checks of a tool before its code runs in a container. */
import type { ToolsRunning } from '../../turns/gateway-tools.ts';
import type { Installation, RequestedTool, ToolOutcome } from '../tool.ts';
import { checkFiles } from './copies.ts';
import type { Environment } from './environment.ts';
import { noSandbox, type RequestContainers } from './request-containers.ts';

/**
 * The tool, which is refused where it cannot run.
 * @param path of its settings
 * @param environment that they have
 * @param field of the environment
 * @throws GatewayError 400 if the gateway has no sandboxes
 */
export function inContainer(
  path: string,
  { requestContainers: containers }: Pick<Installation, 'requestContainers'>,
  environment: Environment | undefined,
  tool: (containers: RequestContainers) => RequestedTool,
  field = `${path}.environment`,
): RequestedTool {
  const where = `${path}.engine`;
  if (containers === undefined) throw noSandbox(where);
  let checked = false;
  const { run, ...made } = tool(containers);
  return {
    ...made,
    ...(run && { run: (input, running) => withNote(containers, running, () => run(input, running)) }),
    lasting: true,
    load(asking) {
      if (checked) return undefined;
      return (async () => {
        await containers.check(where);
        if (environment !== undefined) {
          await checkFiles(environment.fileIds, asking, `${field}.file_ids`);
          await containers.checkNetwork(environment, asking.request.caller, field);
        }
        checked = true;
      })();
    },
  };
}

/** The outcome with the notes about the container for the model. */
async function withNote(
  containers: RequestContainers,
  { request }: ToolsRunning,
  run: () => ToolOutcome | Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const outcome = await run();
  const note = containers.takeNote(request.id);
  return note === undefined ? outcome : { ...outcome, result: `${note}\n${outcome.result}` };
}
