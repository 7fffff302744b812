/** The driver for Kubernetes. Loaded only where it is chosen, because its client is large. */
export { KubernetesDriver } from './driver.ts';
