/**
 * Destinations (`/observability/destinations`): systems of the customer that get a record of every generation of a
 * workspace.
 *
 *     operations, config     the control plane; secrets are stored encrypted
 *     record                 the data that destinations receive for a generation
 *     exporter, active       chooses the destinations of a record, in the memory of each process
 *     delivery/              bounded queues, retries, durable batches
 *     kinds/, otlp/          one entry or file for each type: the requests that it understands
 *
 * Not here: metrics and the request log of the gateway itself (`observability/`), and what is kept of contents
 * (`transcripts/`): only logged contents are sent.
 */
export { Exporter, startExporter } from './exporter.ts';
export { destinationMigrations } from './migrations/index.ts';
export { type DestinationParts, destinationOperations } from './operations.ts';
export { parametersOf } from './record.ts';
export { sealedDestinationBatches, sealedDestinationSecrets } from './sealed.ts';
export { endDestinations } from './workspace-end.ts';
