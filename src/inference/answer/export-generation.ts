/** Hands the record of a settled generation to the destinations of its workspace. */
import { parametersOf } from '../../destinations/index.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';

/** Costs one look-up if the workspace has no destinations. After `logContents`, whose contents are exported. */
export function exportGeneration(context: RequestContext, { exporter, clock }: InferenceParts): void {
  const { caller } = context.request;
  if (exporter === undefined || !exporter.exports(caller.workspaceId)) return;
  context.addListener({
    ended({ row }) {
      const { facts, document } = context.request;
      exporter.take({
        ...{ row, caller, requestedModel: facts.model, contents: context.contents },
        ...{ parameters: parametersOf(document.structure), trace: document.member('trace'), endedAt: clock.now() },
      });
    },
  });
}
