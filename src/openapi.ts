/** Prints the OpenAPI document of the service: `npm run openapi` writes it to openapi.json, a test compares the two. */
import { describeService } from './service-document.ts';

process.stdout.write(describeService());
