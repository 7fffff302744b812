/**
 * What a browser sees of the gateway: the start page, the API reference, and the OpenAPI document behind it. Static HTML
 * without scripts and without outside hosts; nothing here needs a key, so nothing here depends on one.
 *
 * Not here: the consent page (`sign-in/`), and the operations that the document describes.
 */
export { type PageParts, pageOperations } from './operations.ts';
