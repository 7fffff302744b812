/**
 * The driver for Linux machines with bubblewrap: unprivileged namespaces, a file system built from nothing, a filter of system calls,
 * control groups where the gateway may make them. Not here: limits of time and output, operations on files (`sandboxes/`).
 */
export { BubblewrapDriver } from './driver.ts';
