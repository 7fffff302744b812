/** Replaces the request by one with another body, for the stages that change it. */
import type { JsonDocument } from '../../base/json.ts';
import type { Admission } from '../context.ts';
import { factsOf, isConversationFormat } from '../request.ts';
import { factsWithFiles } from './referenced-files.ts';

export function changeDocument(context: Admission, document: JsonDocument): void {
  const { request, files } = context;
  const { format } = request;
  const facts =
    files === undefined || !isConversationFormat(format)
      ? factsOf(format, document)
      : factsWithFiles({ format, document }, files);
  context.request = { ...request, document, facts };
}
