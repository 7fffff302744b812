import { type ErrorCode, LineCounter, parseDocument } from 'yaml';
import { Field, type Source } from './field.ts';
import type { Problem } from './problems.ts';

/** Parses the file's text. Returns undefined when the document is empty, or broken (then `problems` says where). */
export function parseYaml(name: string, text: string, env: Source['env'], problems: Problem[]): Field | undefined {
  const lines = new LineCounter();
  let document: Source['document'];
  try {
    document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, logLevel: 'error' });
  } catch {
    problems.push({ source: name, line: 1, column: 1, path: '', message: 'is nested too deeply to be read' });
    return undefined;
  }
  // Problems after the first syntax error are mostly its consequences.
  for (const { code, pos } of [...document.errors, ...document.warnings].slice(0, 1)) {
    const { line, col } = lines.linePos(pos[0]);
    const lineText = text.slice(lines.lineStarts[line - 1], lines.lineStarts[line]);
    const hint = /[[{,].*\$\{/.test(lineText) ? `; inside { } and [ ] a $\{...} needs quotes around it` : '';
    problems.push({ source: name, line, column: col, path: '', message: explain(code) + hint });
  }
  if (document.errors.length + document.warnings.length > 0 || document.contents === null) return undefined;
  return new Field({ name, document, lines, env, problems }, document.contents, '');
}

/** The parser's own messages quote the file, which may hold a credential; these do not. */
function explain(code: ErrorCode): string {
  switch (code) {
    case 'DUPLICATE_KEY':
      return 'is not valid YAML: this member occurs twice';
    case 'TAB_AS_INDENT':
      return 'is not valid YAML: indent with spaces, not with tabs';
    case 'BAD_INDENT':
    case 'BAD_SCALAR_START':
    case 'MISSING_CHAR':
    case 'UNEXPECTED_TOKEN':
    case 'BLOCK_AS_IMPLICIT_KEY':
    case 'MULTILINE_IMPLICIT_KEY':
      return 'is not valid YAML here: look for wrong indentation, a missing bracket, comma or quote';
    case 'MULTIPLE_DOCS':
      return 'must be one YAML document, not several';
    case 'BAD_ALIAS':
    case 'ALIAS_PROPS':
      return 'is not valid YAML: a text that begins with * refers to an anchor (&) that does not exist; put it in quotes';
    case 'TAG_RESOLVE_FAILED':
      return 'has an unknown tag (!); put the text in quotes';
    case 'RESOURCE_EXHAUSTION':
      return 'is nested too deeply to be read';
    default:
      return `is not valid YAML (${code})`;
  }
}
