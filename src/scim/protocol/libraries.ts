/**
 * The libraries that parse filters and apply patches, loaded on first use because most installations never need them.
 */
interface Libraries {
  parse: typeof import('scim2-parse-filter').parse;
  scimPatch: typeof import('scim-patch').scimPatch;
}

let loaded: Libraries | undefined;

/** Call it before parsing a filter or a patch. */
export async function loadLibraries(): Promise<void> {
  if (loaded) return;
  const [{ parse }, { scimPatch }] = await Promise.all([import('scim2-parse-filter'), import('scim-patch')]);
  loaded = { parse, scimPatch };
}

export function libraries(): Libraries {
  if (!loaded) throw new Error('the SCIM libraries are not loaded yet');
  return loaded;
}
