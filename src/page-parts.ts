/** What the start page and the API reference are made of. */
import manifest from '../package.json' with { type: 'json' };
import type { Current } from './current.ts';
import type { PageParts } from './pages/index.ts';
import { serviceDocument } from './service-document.ts';
import { isOnlySimulated } from './start-summary.ts';

export { type Serving, servingOf } from './start-summary.ts';

export function pageParts(current: Current): PageParts {
  return {
    version: manifest.version,
    document: () => JSON.stringify(serviceDocument()),
    standing: () => ({ onlySimulated: isOnlySimulated(current.catalog) }),
  };
}
