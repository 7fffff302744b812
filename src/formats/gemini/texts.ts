/** The texts of a client's request, for guardrail filters. */
import type { TextVisitor, VisitTexts } from '../conversation/texts.ts';
import { textsWith } from '../texts/index.ts';
import { isSealed, openedSeal, resealed } from './thought-seal.ts';

const visit = textsWith({
  users: 'contents',
  names:
    'contents parts inlineData inline_data fileData file_data mimeType mime_type fileUri file_uri displayName ' +
    'display_name functionCall functionResponse function_response args response thought thoughtSignature ' +
    'thought_signature systemInstruction system_instruction generationConfig generation_config toolConfig tool_config ' +
    'functionDeclarations function_declarations parametersJsonSchema parameters_json_schema responseSchema ' +
    'response_schema responseJsonSchema response_json_schema _responseJsonSchema executableCode codeExecutionResult ' +
    'toolCall toolResponse toolType safetySettings safety_settings functionCallingConfig thinkingConfig',
  free:
    'parametersJsonSchema parameters_json_schema responseSchema response_schema responseJsonSchema ' +
    'response_json_schema _responseJsonSchema',
  inputs: 'args response',
  addresses: 'fileUri file_uri',
  media: 'inlineData inline_data fileData file_data',
  worded: 'mimeType mime_type',
});

/** A seal could hide a text in what looks like a signature, so it is opened. */
export const texts: VisitTexts = (body, visitor) => {
  visit(body, visitor);
  visitSeals(body, visitor);
};

function visitSeals(value: unknown, visitor: TextVisitor): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    const sealed = isSealed(inner) ? openedSeal(inner) : undefined;
    if (sealed === undefined) visitSeals(inner, visitor);
    else {
      const before = JSON.stringify(sealed);
      visit({ contents: [{ role: 'model', parts: [sealed] }] }, visitor);
      if (JSON.stringify(sealed) !== before) (value as Record<string, unknown>)[name] = resealed(sealed);
    }
  }
}
