/** What a tool checks before its code can run in a container. */
import type { Installation, RequestedTool } from '../tool.ts';
import { checkFiles } from './copies.ts';
import type { Environment } from './environment.ts';
import { noSandbox, type RequestContainers } from './request-containers.ts';

/**
 * The tool, which is refused where it cannot run.
 * @param path of its settings
 * @param environment that they have
 * @throws GatewayError 400 if the gateway has no sandboxes
 */
export function inContainer(
  path: string,
  { requestContainers: containers }: Pick<Installation, 'requestContainers'>,
  environment: Environment | undefined,
  tool: (containers: RequestContainers) => RequestedTool,
): RequestedTool {
  const where = `${path}.engine`;
  if (containers === undefined) throw noSandbox(where);
  let checked = false;
  return {
    ...tool(containers),
    lasting: true,
    load(asking) {
      if (checked) return undefined;
      return (async () => {
        await containers.check(where);
        if (environment !== undefined) {
          await checkFiles(environment.fileIds, asking, `${path}.environment.file_ids`);
          await containers.checkNetwork(environment, asking.request.caller, `${path}.environment`);
        }
        checked = true;
      })();
    },
  };
}
