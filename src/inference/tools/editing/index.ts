/** Tools that edit texts: `svc:memory` in the database, `svc:text_editor` in the container of the request. */
export { memory } from './memory.ts';
export { textEditor } from './text-editor.ts';
