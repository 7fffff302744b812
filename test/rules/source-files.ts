/** The project's own TypeScript as the rules about the whole see it: paths, code without comments, strings, imports. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.join(import.meta.dirname, '..', '..');

export interface Import {
  /** Path below the root for our own files (`src/base/clock.ts`), else the module's name. */
  target: string;
  own: boolean;
  /** Erased before the program runs. */
  typeOnly: boolean;
  /** `import()`: loaded when the call runs. */
  lazy: boolean;
  /** The names in braces; empty for namespace, side-effect and dynamic imports. */
  names: string[];
}

export interface SourceFile {
  /** Below the root, with `/`. */
  path: string;
  lines: number;
  /** The text with comments, and the content of strings and regular expressions, blanked out. */
  code: string;
  /** The content of every string literal and of the constant parts of templates. */
  strings: string[];
  imports: Import[];
}

/** Every TypeScript file below the given folders of the project. */
export function sourceFiles(folders: readonly string[]): SourceFile[] {
  return folders.flatMap(typescriptBelow).map((file) => readSource(file, readFileSync(path.join(ROOT, file), 'utf8')));
}

function typescriptBelow(folder: string): string[] {
  let entries: string[];
  try {
    entries = readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  } catch {
    return [];
  }
  const files = entries.filter((entry) => entry.endsWith('.ts') && !entry.includes('node_modules'));
  return files.map((entry) => path.posix.join(folder, entry.replaceAll(path.sep, '/'))).sort();
}

export function readSource(file: string, text: string): SourceFile {
  const { code, strings } = blank(text);
  return { path: file, lines: text.split('\n').length, code, strings, imports: readImports(file, text, code) };
}

const STATIC_IMPORT = /(?:^|;|\n)\s*(import|export)\b([^;'"`]*?)(?:\bfrom\s*)?(['"])/g;
const DYNAMIC_IMPORT = /\bimport\s*\(\s*(['"])/g;

/** Statements are found where comments are blanked out, so that an example in a comment is no import. */
function readImports(file: string, text: string, code: string): Import[] {
  const imports: Import[] = [];
  const add = (quote: number, clause: string, typeOnly: boolean, lazy = false) => {
    const end = text.indexOf(text.charAt(quote), quote + 1);
    const specifier = text.slice(quote + 1, end);
    const own = specifier.startsWith('.');
    const target = own ? path.posix.join(path.posix.dirname(file), specifier) : specifier;
    const names = /\{([^}]*)\}/.exec(clause)?.[1]?.split(',') ?? [];
    imports.push({ target, own, typeOnly, lazy, names: names.map((name) => name.trim()).filter(Boolean) });
  };
  for (const match of code.matchAll(STATIC_IMPORT)) {
    const clause = match[2] ?? '';
    if (match[1] === 'export' && !/[*}]/.test(clause)) continue;
    if (match[1] === 'export' && !/\bfrom\s*['"]$/.test(match[0])) continue;
    add(match.index + match[0].length - 1, clause, isTypeOnly(clause));
  }
  for (const match of code.matchAll(DYNAMIC_IMPORT)) add(match.index + match[0].length - 1, '', false, true);
  return imports;
}

function isTypeOnly(clause: string): boolean {
  if (/^\s*type\b/.test(clause)) return true;
  const names = /^\s*\{([^}]*)\}\s*$/
    .exec(clause)?.[1]
    ?.split(',')
    .filter((name) => name.trim() !== '');
  return names !== undefined && names.length > 0 && names.every((name) => /^\s*type\s/.test(name));
}

/** A regular expression may start after these; after anything else `/` divides. */
const BEFORE_REGEX =
  /(?:^|[=(,:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield))\s*$/;

/** Replaces what is not code by spaces, keeping every offset and line break. */
function blank(text: string): { code: string; strings: string[] } {
  // Split by UTF-16 unit, so that offsets are those of the text.
  const code = text.split('');
  const strings: string[] = [];
  const erase = (start: number, end: number) => {
    for (let at = start; at < end; at += 1) if (code[at] !== '\n') code[at] = ' ';
  };
  /** Depths of braces at which a template's `${` closes. */
  const templates: number[] = [];
  let depth = 0;
  let at = 0;
  const template = (start: number) => {
    let end = start;
    while (end < text.length && text[end] !== '`' && !text.startsWith('${', end)) end += text[end] === '\\' ? 2 : 1;
    strings.push(text.slice(start, end));
    erase(start, end);
    if (text[end] === '`') return end + 1;
    depth += 1;
    templates.push(depth);
    return end + 2;
  };
  while (at < text.length) {
    const char = text[at];
    if (text.startsWith('//', at)) {
      const end = text.indexOf('\n', at);
      erase(at, end === -1 ? text.length : end);
      at = end === -1 ? text.length : end;
    } else if (text.startsWith('/*', at)) {
      const end = text.indexOf('*/', at + 2) + 2;
      erase(at, end);
      at = end;
    } else if (char === "'" || char === '"') {
      let end = at + 1;
      while (end < text.length && text[end] !== char) end += text[end] === '\\' ? 2 : 1;
      strings.push(text.slice(at + 1, end));
      erase(at + 1, end);
      at = end + 1;
    } else if (char === '`') {
      at = template(at + 1);
    } else if (char === '/' && BEFORE_REGEX.test(code.slice(Math.max(0, at - 20), at).join(''))) {
      let end = at + 1;
      let inClass = false;
      while (end < text.length && (text[end] !== '/' || inClass)) {
        if (text[end] === '\\') end += 1;
        else if (text[end] === '[') inClass = true;
        else if (text[end] === ']') inClass = false;
        end += 1;
      }
      erase(at + 1, end);
      at = end + 1;
    } else {
      if (char === '{') depth += 1;
      if (char === '}') {
        const closes = templates.at(-1) === depth;
        depth -= 1;
        if (closes) {
          templates.pop();
          at = template(at + 1);
          continue;
        }
      }
      at += 1;
    }
  }
  return { code: code.join(''), strings };
}
