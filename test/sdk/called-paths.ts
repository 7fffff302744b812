/** Every operation that a client library calls, read from its sources: method and path, with `none` in place of parameters. */
import { globSync, readFileSync } from 'node:fs';

export interface CalledPath {
  method: string;
  /** Below the base URL, `/responses/none`. */
  path: string;
}

/** `pathToFunc("/keys/{hash}")` and `method: "GET"` in a file for each method. */
export function pathsOfOpenRouter(): CalledPath[] {
  return unique(
    globSync('node_modules/@openrouter/sdk/esm/funcs/*.js').flatMap((file) => {
      const text = readFileSync(file, 'utf8');
      const path = /pathToFunc\("([^"]+)"/.exec(text)?.[1];
      const method = /method: "([A-Z]+)"/.exec(text)?.[1];
      return path === undefined || method === undefined
        ? []
        : [{ method, path: path.replaceAll(/\{[^}]+\}/g, 'none') }];
    }),
  );
}

/** `this._client.post(path`/responses/${id}`, ...)` in the resources of libraries that share one generator. */
export function pathsOfResources(folder: string): CalledPath[] {
  // A list may be asked for by POST, which its options say within the statement.
  const call =
    /_client\.(get|getAPIList|post|put|patch|delete)\(\s*(?:path\s*)?[`'"]([^`'"?]+)(?:[^;]*?\bmethod: '(\w+)')?/g;
  return unique(
    globSync(`node_modules/${folder}/resources/**/*.mjs`).flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(call)].map(([, verb, path, method]) => ({
        method: verb === 'getAPIList' ? (method ?? 'get').toUpperCase() : verb!.toUpperCase(),
        path: path!.replaceAll(/\$\{[^}]+\}/g, 'none'),
      })),
    ),
  );
}

function unique(paths: CalledPath[]): CalledPath[] {
  return [...new Map(paths.map((each) => [`${each.method} ${each.path}`, each])).values()];
}
