/** The entry of the proxy's process. The gateway starts it (`supervisor.ts`). */
import { followGateway } from './proxy.ts';

followGateway();
