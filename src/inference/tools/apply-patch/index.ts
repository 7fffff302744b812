/** `svc:apply_patch`. Not here: the container in which it changes files (`tools/container`). */
export { applyPatch } from './apply-patch.ts';
