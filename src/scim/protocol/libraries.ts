/** The libraries that read filters and apply patches. Most installations never need them, so the first request loads them. */
interface Libraries {
  parse: typeof import('scim2-parse-filter').parse;
  scimPatch: typeof import('scim-patch').scimPatch;
}

let loaded: Libraries | undefined;

/** Before anything reads a filter or a patch. */
export async function loadLibraries(): Promise<void> {
  if (loaded) return;
  const [{ parse }, { scimPatch }] = await Promise.all([import('scim2-parse-filter'), import('scim-patch')]);
  loaded = { parse, scimPatch };
}

export function libraries(): Libraries {
  if (!loaded) throw new Error('the libraries of SCIM are not loaded yet');
  return loaded;
}
